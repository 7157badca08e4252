# SPDX-License-Identifier: Apache-2.0
"""Workers as threads of this process: nothing is pickled or copied; they scale where datasets release the GIL."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
import traceback
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data._utils import worker as torch_worker

from . import fetch
from .crew import Died, LocalFrame
from .failures import Failure
from .payload import Payload
from .worker import CRASHED, STOP, TASK, Session, Spec

_infos = threading.local()
_JOIN_S = 5.0


def set_thread_info(info: Any) -> None:
    """torch keeps one worker info per process. From the first thread worker on, its getter asks the thread first."""
    _infos.info = info
    getter = torch_worker.get_worker_info
    if getter.__globals__.get("_feedline_thread_infos") is None:
        getter.__globals__["_feedline_thread_infos"] = _infos
        # The function object is what users have imported, so its code changes and not the name.
        getter.__code__ = _get_worker_info.__code__


@contextlib.contextmanager
def hidden_info() -> Iterator[None]:
    """In a worker thread: as if it were none."""
    info, _infos.info = _infos.info, None
    try:
        yield
    finally:
        _infos.info = info


def _get_worker_info() -> Any:
    info = getattr(_feedline_thread_infos, "info", None)  # type: ignore[name-defined]  # noqa: F821
    return _worker_info if info is None else info  # type: ignore[name-defined]  # noqa: F821


class ThreadWorker(threading.Thread):
    """One worker. Has what frameworks ask of worker processes."""

    exitcode: int | None = None

    def __init__(self, crew: ThreadCrew, worker: int) -> None:
        super().__init__(name=f"feedline-worker-{worker}", daemon=True)
        self.worker = worker
        self.pid = None
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stage, self.sample, self.samples = fetch.STARTING, None, 0
        self._results, self._spec, self._payload = crew.results, crew.spec, crew.payload
        self._stopping = crew.stopping
        self.first_task = 0

    def run(self) -> None:
        session = Session(self._spec, self.worker, self._notice)
        try:
            session.start(lambda: self._payload, own_process=False)
            while not self._stopping.is_set():
                self.stage = fetch.WAITING
                task, kind, value = self.tasks.get()
                if kind == STOP:
                    break
                if task >= self.first_task or kind != TASK:
                    reply = session.answer(kind, value)
                    if reply is not None:
                        self._results.put((self.worker, LocalFrame(task, *reply)))
                        del reply
                del value
        except _Stopped:
            pass
        except BaseException as error:  # a worker process would have ended with it
            failure = Failure(error, f"in DataLoader worker thread {self.worker}", self.worker, self.sample, None)
            self._results.put((self.worker, LocalFrame(0, CRASHED, failure)))
        finally:
            self.exitcode = 0
            set_thread_info(None)

    def _notice(self, stage: int, sample: Any) -> None:
        self.stage, self.sample = stage, sample
        self.samples += 1
        if self._stopping.is_set():
            raise _Stopped

    def terminate(self) -> None:
        """A thread cannot be ended from outside; it ends after its sample."""


class _Stopped(BaseException):
    pass


class _Fork:
    """Whether torch has yet to replace its thread pool, in a process that was forked."""

    pending = False

    @classmethod
    def _in_child(cls) -> None:
        cls.pending = True

    @classmethod
    def settle(cls) -> None:
        """Before threads of a forked child call torch.

        A child's first call that sets the number of threads, which each thread's first parallel operation makes,
        replaces the pool its parent left (caffe2/utils/threadpool/pthreadpool-cpp.cc) without a lock: of two threads
        at once, one may find none, "Invalid thread pool!".
        """
        if cls.pending:
            torch.set_num_threads(torch.get_num_threads())
            cls.pending = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Fork._in_child)


class ThreadCrew:
    def __init__(self, spec: Spec, payload: Payload) -> None:
        self.spec, self.payload = spec, payload
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stopping = threading.Event()
        self.workers = [ThreadWorker(self, i) for i in range(spec.num_workers)]
        _Fork.settle()
        for worker in self.workers:
            worker.start()

    def send(self, worker: int, task: int, kind: int, value: Any) -> None:
        self.workers[worker].tasks.put((task, kind, value))

    def receive(self, timeout: float) -> tuple[int, LocalFrame] | Died | None:
        try:
            return self.results.get(timeout=timeout) if timeout > 0 else self.results.get_nowait()
        except queue.Empty:
            return None

    def leave(self, worker: int) -> None:
        self.send(worker, 0, STOP, None)

    def skip_before(self, task: int) -> None:
        for worker in self.workers:
            worker.first_task = task

    def want(self, worker: int, task: int) -> None:
        """Threads wait for no memory."""

    def progress(self, worker: int) -> int:
        return self.workers[worker].samples

    def sample(self, worker: int) -> Any:
        return self.workers[worker].sample

    def activity(self, worker: int) -> str:
        thread = self.workers[worker]
        return f"last seen {fetch.STAGES[thread.stage]}, last index {thread.sample}"

    def stack(self, worker: int) -> str:
        frame: types.FrameType | None = sys._current_frames().get(self.workers[worker].ident or 0)
        return "" if frame is None else "".join(traceback.format_stack(frame))

    def bytes_held(self) -> int:
        return 0

    def close(self) -> None:
        self.stopping.set()
        deadline = time.monotonic() + _JOIN_S
        for worker in self.workers:
            worker.tasks.put((0, STOP, None))
        for worker in self.workers:
            if worker is not threading.current_thread():
                worker.join(max(0.0, deadline - time.monotonic()))
