# SPDX-License-Identifier: Apache-2.0
"""The worker processes of an iterator, which are connected to the training loop by pipes and a ring.

All groups implement `WorkerGroup`: `send` does not wait; `receive` returns (worker, frame), `Died`, or None after its
timeout.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...errors import WorkerDiedError
from ...machine import limits
from ..fetching import fetch
from ..fetching.failures import died
from .channel import Inbox, Outbox
from .ring import Control, Ring
from .ring_reader import RingReader
from .serialization import Encoder, Frame
from .worker import LOAD, STACK_SIGNAL, STOP, WorkerConfig, run_process
from .worker_args import (
    InheritedWorkerArgs,
    Load,
    NoGcProcessName,
    PassedFd,
    SharedWorkerArgs,
    WorkerArgs,
    name_unpicklable,
)

JOIN_S = 5.0  # as in torch: a worker may finish its current sample
_live: weakref.WeakSet[Any] = weakref.WeakSet()


class Died(NamedTuple):
    worker: int
    error: WorkerDiedError | None  # None for a thread, which ends only after reporting an error


def close_inherited() -> None:
    """Called in a forked worker: closes the loader's ends of the pipes of other workers."""
    for owner in list(_live):
        owner._close_ends()


def nothing() -> None:
    pass


class ProcessWorkers:
    def __init__(self, config: WorkerConfig, worker_args: WorkerArgs, context: Any) -> None:
        self._context = context
        self._method = context.get_start_method()
        self.ring = Ring(config.num_workers)
        self.reader = RingReader(self.ring)
        self._stacks = self._stacks_file()
        config.ring, config.stack_fd = self.ring, self._stacks
        config.main_thread = threading.current_thread() is threading.main_thread()
        self.config, self._worker_args = config, worker_args
        self._controls = [self.ring.control(i) for i in range(config.num_workers)]
        self._epoll = select.epoll()
        self._by_fd: dict[int, tuple[str, int]] = {}
        self._ready: deque[Any] = deque()
        self._encoder = Encoder()
        self._oom_kills = limits.oom_kills()
        self._pid = os.getpid()
        self._closed = False
        self.workers: list[Any] = []
        self._inboxes: list[Inbox] = []
        self._outboxes: list[Outbox] = []
        self._leaving: set[int] = set()
        self._dead: set[int] = set()
        preload_forkserver(self._method)
        close_at_exit(self)
        self._start_all(range(config.num_workers if config.starting is None else config.starting))

    def _stacks_file(self) -> PassedFd:
        """Returns the file to which workers write their Python stack on request."""
        return stacks_file()

    def _start_all(self, workers: Iterable[int], occupied: Sequence[tuple[int, int]] = ()) -> None:
        if self._method != "fork":
            shared = SharedWorkerArgs(self.ring, workers)
            for worker in workers:
                self._start(worker, shared, occupied)
            if self._hand_over(shared, workers):
                return
            self._kill(workers)
        held = InheritedWorkerArgs(self._worker_args)
        for worker in workers:
            self._start(worker, held, occupied)

    def _hand_over(self, shared: SharedWorkerArgs, workers: Iterable[int]) -> bool:
        """Returns False if multiprocessing must pickle a tensor, a lock or a similar object for each process
        separately.
        """
        try:
            shared.fill(self._worker_args)
        except Exception:
            return False
        for worker in workers:
            self.send(worker, 0, LOAD, None)
        return True

    def _kill(self, workers: Iterable[int]) -> None:
        """Kills processes that have just been started."""
        for worker in workers:
            self.workers[worker].kill()
        for worker in workers:
            self.workers[worker].join()
            self._forget(worker)
            self._inboxes[worker].close()
            self._outboxes[worker].close()

    def _start(self, worker: int, load: Load, occupied: Sequence[tuple[int, int]]) -> None:
        inherited = close_inherited if self._method == "fork" else nothing

        def launched(tasks: Any, results: Any) -> Any:
            process = self._context.Process(
                target=run_process,
                args=(self.config, load, worker, tasks, results, occupied, inherited),
                daemon=True,
            )
            if self._method != "fork":
                process.name = NoGcProcessName(process.name)
            try:
                process.start()
            except (TypeError, AttributeError, pickle.PicklingError) as error:
                self._explain_pickling(error)
                raise
            return process

        self._connect(worker, launched)

    def _connect(self, worker: int, launched: Callable[[Any, Any], Any]) -> None:
        """`launched`: a function that passes the worker its ends of two pipes, for tasks and results, and returns its
        process.
        """
        tasks, outbox_end = self._context.Pipe(duplex=False)
        inbox_end, results = self._context.Pipe(duplex=False)
        inbox, outbox = Inbox(inbox_end, worker, self.reader), Outbox(outbox_end)
        if worker < len(self._inboxes):
            self._inboxes[worker], self._outboxes[worker] = inbox, outbox
        else:
            self._inboxes.append(inbox)
            self._outboxes.append(outbox)
        try:
            process = launched(tasks, results)
        finally:
            tasks.close()
            results.close()
        if worker < len(self.workers):
            self.workers[worker] = process
        else:
            self.workers.append(process)
        for fd, what in ((inbox.fd, "inbox"), (process.sentinel, "sentinel")):
            self._by_fd[fd] = (what, worker)
            self._epoll.register(fd, select.EPOLLIN)

    def _explain_pickling(self, error: Exception) -> None:
        warnings.warn(
            "Got pickle error when attempting to start a worker Process. "
            "This might be because the worker Process arguments are not picklable. "
            "Python 3.14+ changed the multiprocessing start method in non-Mac POSIX platforms "
            "to 'forkserver', which requires the worker Process arguments to be picklable. "
            "You can also try multiprocessing.set_start_method('fork').",
            stacklevel=2,
        )
        named = name_unpicklable(self._worker_args)
        if named:
            error.add_note(f"Feedline: not picklable: {named}")

    def send(self, worker: int, task: int, kind: int, value: Any) -> None:
        self._outboxes[worker].put(self._encoder.encode(task, kind, value))

    def receive(self, timeout: float) -> tuple[int, Frame] | Died | None:
        if not self._ready:
            waiting = False
            for outbox in self._outboxes:
                outbox.flush()
                waiting = waiting or outbox.is_waiting
            # An incomplete large message continues as soon as the worker has read some of it.
            events = self._epoll.poll(min(timeout, 0.01) if waiting else timeout)
            ended = []
            for fd, _ in events:
                what, worker = self._by_fd[fd]
                self._drain(worker)
                if what == "sentinel" or self._inboxes[worker].ended:
                    ended.append(worker)
            for worker in dict.fromkeys(ended):
                self._bury(worker)
        return self._ready.popleft() if self._ready else None

    def _drain(self, worker: int) -> None:
        inbox = self._inboxes[worker]
        while (frame := inbox.take()) is not None:
            self._ready.append((worker, frame))

    def _bury(self, worker: int) -> None:
        process = self.workers[worker]
        if worker in self._dead:
            return
        process.join(JOIN_S)
        self._drain(worker)
        self._dead.add(worker)
        self._forget(worker)
        if worker not in self._leaving:
            control = self._controls[worker]
            error = died(
                process.pid, process.exitcode, worker, control[Control.RSS], self._oom_kills, self.activity(worker)
            )
            error.sample_index = self.sample(worker)  # type: ignore[attr-defined]
            self._ready.append(Died(worker, error))

    def _forget(self, worker: int) -> None:
        """Stops waiting for the worker's process."""
        for fd in (self._inboxes[worker].fd, self.workers[worker].sentinel):
            with contextlib.suppress(OSError, KeyError, ValueError):
                self._epoll.unregister(fd)
            self._by_fd.pop(fd, None)

    def respawn(self, worker: int, pending: list[tuple[int, int]]) -> None:
        """Replaces a dead process. `pending`: blocks of frames that have not been decoded yet."""
        self._forget(worker)
        self._inboxes[worker].close()
        self._outboxes[worker].close()
        self._dead.discard(worker)
        self._controls[worker][Control.READY] = 0
        self._start_all([worker], self.reader.occupied(worker) + pending)

    def leave(self, worker: int) -> None:
        """Ends a worker that has no more work."""
        self._leaving.add(worker)
        self.send(worker, 0, STOP, None)

    def rejoin(self, worker: int) -> bool:
        """Starts a new process for a worker that left. Returns False if the old process has not ended yet."""
        if worker < len(self.workers) and self.workers[worker].is_alive():
            return False
        if worker < len(self.workers):
            self._leaving.discard(worker)
            self._drop_answers(worker)
            self.respawn(worker, [])
        else:
            self._start_all([worker])
        return True

    def _drop_answers(self, worker: int) -> None:
        """Drops replies before another process uses their memory."""
        kept: deque[Any] = deque()
        for entry in self._ready:
            if isinstance(entry, Died) or entry[0] != worker:
                kept.append(entry)
            else:
                entry[1].drop()
        self._ready = kept

    def largest_bytes(self) -> int:
        """Returns the resident memory of the largest worker so far, in bytes."""
        return max(control[Control.RSS] for control in self._controls)

    def skip_before(self, task: int) -> None:
        for control in self._controls:
            control[Control.FIRST_TASK] = task

    def want(self, worker: int, task: int) -> None:
        """Called when the loop waits for this task, so that the worker does not wait for memory to finish it."""
        self._controls[worker][Control.WANTED] = task + 1

    def progress(self, worker: int) -> int:
        return self._controls[worker][Control.SAMPLES]

    def sample(self, worker: int) -> int | None:
        index = self._controls[worker][Control.INDEX]
        return None if index < 0 else index

    def activity(self, worker: int) -> str:
        stage = self._controls[worker][Control.STAGE]
        sample = self.sample(worker)
        words = f"last seen {fetch.STAGES[stage]}"
        return words if sample is None or stage in (fetch.STARTING, fetch.INIT) else f"{words}, last index {sample}"

    def stack(self, worker: int) -> str:
        """Returns the current Python stack of a worker, even if the worker is blocked."""
        if not self._controls[worker][Control.READY] or not self.workers[worker].is_alive():
            return "  (the worker is still starting and has no Python stack yet)"
        fd = self._stacks.fd
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.workers[worker].pid, STACK_SIGNAL)
        size = -1
        for _ in range(20):
            time.sleep(0.025)
            before, size = size, os.fstat(fd).st_size
            if size and size == before:
                break
        return os.pread(fd, max(size, 0), 0).decode(errors="replace")

    def bytes_held(self) -> int:
        return self.reader.bytes_held()

    def _close_ends(self) -> None:
        ends: list[Any] = [*self._inboxes, *self._outboxes]
        for end in ends:
            with contextlib.suppress(OSError):
                end.close()
        self._epoll.close()
        self._closed = True

    def close(self) -> None:
        """Requests that the workers end, and then ends them by signals. Batches that the user holds remain valid."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        for control in self._controls:
            control[Control.STOP] = 1
        ends: list[Any] = [*self._outboxes, *self._inboxes]
        for end in ends:
            end.close()
        self._epoll.close()
        end_processes(self.workers)
        for entry in self._ready:
            if not isinstance(entry, Died):
                entry[1].drop()
        self._ready.clear()
        self.reader.close()


def end_processes(processes: Sequence[Any]) -> None:
    """Waits for processes that should end, then terminates and finally kills them."""
    deadline = time.monotonic() + JOIN_S
    for end_it in (lambda w: None, lambda w: w.terminate(), lambda w: w.kill()):
        for process in processes:
            if process.is_alive():
                end_it(process)
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
        if not any(process.is_alive() for process in processes):
            break
        deadline = time.monotonic() + 1.0


def stacks_file() -> PassedFd:
    return PassedFd(os.memfd_create("feedline-stacks", os.MFD_CLOEXEC))


def preload_forkserver(method: str) -> None:
    """Makes the fork server import torch, so that it starts workers in milliseconds. Modules that the user has
    preloaded stay preloaded.
    """
    if method != "forkserver":
        return
    with contextlib.suppress(Exception):
        from multiprocessing import forkserver

        server: Any = forkserver._forkserver
        if server._forkserver_pid is None and server._preload_modules == ["__main__"]:
            server.set_forkserver_preload(["__main__", "feedline.torch_loader.workers.worker"])


_exit_registered = False


def close_at_exit(owner: Any) -> None:
    """`owner`: an object with the methods `close()`, and `_close_ends()` for processes forked while it exists."""
    global _exit_registered
    _live.add(owner)
    if not _exit_registered:
        _exit_registered = True
        atexit.register(_close_all)


def _close_all() -> None:
    for owner in list(_live):
        owner.close()


class LocalFrame:
    """A message between threads, which passes the object itself."""

    __slots__ = ("_value", "kind", "task")

    def __init__(self, task: int, kind: int, value: Any) -> None:
        self.task, self.kind, self._value = task, kind, value

    def nbytes(self) -> int:
        """Unknown for objects."""
        return 0

    def decode(self) -> Any:
        value, self._value = self._value, None
        return value

    def occupied(self) -> list[tuple[int, int]]:
        return []

    def drop(self) -> None:
        self._value = None
