# SPDX-License-Identifier: Apache-2.0
"""Worker processes for user functions: each loader thread sends a sample to a process and waits for the result.

A message is a frame with the pickle and the sizes of its buffers, then a frame for each buffer, so that arrays are
written to the pipe without a copy.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import queue
import signal
import struct
import threading
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from ...errors import ConfigError, WorkerDiedError
from .mapping import Fields, NotStarted, Step

_PR_SET_PDEATHSIG = 1
_END_S = 1.5  # grace period for a process that is handling a sample when the loader ends
_LOOK_S = 1.0  # interval of checks for the parent, if the kernel cannot signal its end

Draw = tuple[int, int, int]


class Processes:
    """A pool of processes that run from :meth:`start` to :meth:`end`. Any thread may call :meth:`run`."""

    def __init__(self, steps: Sequence[Step], count: int) -> None:
        self._steps, self._count = tuple(steps), count
        self._pickled = b""
        self._context = multiprocessing.get_context("spawn")
        self._idle: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._ended = False
        self._pid = os.getpid()

    def start(self) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # imports the main script
            raise ConfigError(UNGUARDED)
        self._pickled = pickle.dumps(self._steps)
        for _ in range(self._count):
            self._idle.put(self._new())

    def run(self, fields: Fields, draw: Draw) -> Fields:
        """Returns the functions' result for the fields, computed in one of the processes; raises the functions'
        exceptions.
        """
        worker = self._idle.get()
        if worker is None:
            self._idle.put(None)  # wakes the next waiter
            raise WorkerDiedError("the loader is closed")
        try:
            answer = worker.ask(fields, draw)
        except (EOFError, OSError):
            died = worker.died()
            if worker.was_ready:
                worker = self._after(worker)
            raise died from None
        finally:
            self._put_back(worker)
        if isinstance(answer, _Failure):
            raise answer.exception()
        made: Fields = answer
        return made

    def end(self) -> None:
        """Ends idle processes at once and busy processes after a grace period."""
        with self._lock:
            if self._ended or self._pid != os.getpid():
                return
            self._ended = True
        with contextlib.suppress(queue.Empty):
            while (worker := self._idle.get_nowait()) is not None:
                worker.connection.close()
        self._idle.put(None)
        until = time.monotonic() + _END_S
        for worker in self._workers:
            worker.process.join(max(0.0, until - time.monotonic()))
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()

    def _new(self) -> _Worker:
        worker = _Worker(self._context, self._pickled)
        self._workers.append(worker)
        return worker

    def _after(self, dead: _Worker) -> _Worker:
        """Replaces a process that died while handling a sample."""
        with self._lock:
            if self._ended:
                return dead
            self._workers.remove(dead)
            return self._new()

    def _put_back(self, worker: _Worker) -> None:
        with self._lock:
            if self._ended:
                worker.connection.close()
            else:
                self._idle.put(worker)


class _Worker:
    """The loader's connection to one process. Only one thread may use a connection at a time."""

    def __init__(self, context: Any, pickled: bytes) -> None:
        self.connection, theirs = context.Pipe()
        is_main = threading.current_thread() is threading.main_thread()
        self.process = context.Process(
            target=serve, args=(theirs, pickled, os.getpid(), is_main), daemon=True, name="feedline-map"
        )
        try:
            self.process.start()
        finally:
            theirs.close()
        self.was_ready = False

    def ask(self, fields: Fields, draw: Draw) -> Any:
        if not self.was_ready:
            failure = receive(self.connection)
            if failure is not None:
                raise failure.exception()
            self.was_ready = True
        send(self.connection, (fields, draw))
        return receive(self.connection)

    def died(self) -> WorkerDiedError | NotStarted:
        self.process.join(_END_S)
        pid, code = self.process.pid, self.process.exitcode
        if code is None:
            how = "closed its pipe"
        elif code < 0:
            how = f"was killed by signal {-code} ({_signal_name(-code)})"
        else:
            how = f"ended with exit code {code}"
        if not self.was_ready and code is not None and code > 0:
            return NotStarted(f"the worker process {how} before its first sample; {UNGUARDED}")
        error = WorkerDiedError(f"the process {pid} that ran the function {how}")
        error.pid, error.exitcode = pid, code  # type: ignore[attr-defined]
        return error


UNGUARDED = 'processes import the main script, so put the code that iterates a loader under if __name__ == "__main__"'


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "with no name"


class _Failure:
    """A picklable form of an exception: its text, and the exception object if it can be pickled."""

    def __init__(self, error: BaseException, about: str = "") -> None:
        self._words = "".join(traceback.format_exception(error))
        self._name, self._message, self._about = type(error).__name__, str(error), about
        self._pickled: bytes | None = None
        with contextlib.suppress(Exception):
            pickled = pickle.dumps(error.with_traceback(None))
            if type(pickle.loads(pickled)) is type(error):  # an exception whose __init__ has other arguments fails only
                # on unpickling
                self._pickled = pickled

    def exception(self) -> BaseException:
        error: BaseException | None = None
        if not self._about:
            with contextlib.suppress(Exception):
                error = pickle.loads(self._pickled or b"")
        if error is None:
            error = type(self._name, (RuntimeError,), {})(self._about + self._message)
        error.__cause__ = _InProcess(self._words)
        return error


class _InProcess(Exception):
    """Cause of an exception from a worker process; contains the traceback from that process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


# ---- messages ----


def send(connection: Connection, value: Any) -> None:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    sizes = [len(view) for view in raw]
    connection.send_bytes(struct.pack(f"<Q{len(sizes)}Q", len(sizes), *sizes) + data)
    for view in raw:
        connection.send_bytes(view)


def receive(connection: Connection) -> Any:
    frame = connection.recv_bytes()
    (count,) = struct.unpack_from("<Q", frame)
    buffers = []
    for size in struct.unpack_from(f"<{count}Q", frame, 8):
        buffers.append(bytearray(size))  # writable arrays, as in a thread
        connection.recv_bytes_into(buffers[-1])
    return pickle.loads(memoryview(frame)[8 * (count + 1) :], buffers=buffers)


# ---- in the worker process ----


def serve(connection: Connection, pickled: bytes, parent: int, is_main: bool) -> None:
    """Main function of a worker process. Returns when the connection closes; the process ends if its parent ends."""
    settle(parent, is_main)
    try:
        steps: tuple[Step, ...] = pickle.loads(pickled)
    except BaseException as error:
        send(connection, _Failure(error, "the worker process cannot import the function: "))
        return
    with contextlib.suppress(EOFError, OSError):
        send(connection, None)
        while True:
            _answer(connection, steps, *receive(connection))


def _answer(connection: Connection, steps: Sequence[Step], fields: Fields, draw: Draw) -> None:
    answer: Any
    try:
        for step in steps:
            fields = step.run(fields, draw)
        answer = fields
    except BaseException as error:
        answer = _Failure(error)
    try:
        send(connection, answer)
    except (EOFError, OSError):
        raise
    except Exception as error:  # a result that cannot be pickled is that sample's error
        send(connection, _Failure(error))


def settle(parent: int, is_main: bool) -> None:
    """Sets a worker process's signals, and ends it when its parent ends.

    Args:
        parent: pid of the parent.
        is_main: whether the parent's main thread started this process.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the engine's threads block all signals, and their children inherit
    # that
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process reports Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # children inherit SIG_IGN from the main process
    if is_main:
        # the kernel sends the signal when the thread that started this process ends; for the main thread that is the
        # end of the process
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    """Exits this process when its parent exits, even while the user's function is running."""
    process = multiprocessing.parent_process()
    while os.getppid() == parent:
        wait([process.sentinel] if process is not None else [], _LOOK_S)
    os._exit(1)
