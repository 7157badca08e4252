# SPDX-License-Identifier: Apache-2.0
"""Runs workers as threads of this process: nothing is pickled or copied. Threads scale if the dataset releases the
GIL.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
import types
from typing import Any

import torch

from ..fetching import fetch
from ..fetching.failures import Failure
from .process_workers import Died, LocalFrame
from .thread_info import set_thread_info
from .worker import CRASHED, STOP, TASK, Session, WorkerConfig
from .worker_args import WorkerArgs

_JOIN_S = 5.0


class ThreadWorker(threading.Thread):
    """A worker thread, with the attributes of worker processes that frameworks use."""

    exitcode: int | None = None

    def __init__(self, group: ThreadWorkers, worker: int) -> None:
        super().__init__(name=f"feedline-worker-{worker}", daemon=True)
        self.worker = worker
        self.pid = None
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stage, self.sample, self.samples = fetch.STARTING, None, 0
        self._results, self._config, self._worker_args = group.results, group.config, group.worker_args
        self._stopping = group.stopping
        self.first_task = 0

    def run(self) -> None:
        session = Session(self._config, self.worker, self._notice)
        try:
            session.start(lambda: self._worker_args, own_process=False)
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
        except BaseException as error:  # it would have ended a worker process
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
        """Lets the thread end after its current sample, because a thread cannot be ended from outside."""


class _Stopped(BaseException):
    pass


class _Fork:
    """Whether torch still has to replace its thread pool in a forked process."""

    pending = False

    @classmethod
    def _in_child(cls) -> None:
        cls.pending = True

    @classmethod
    def settle(cls) -> None:
        """Called before threads of a forked child call torch.

        In a child, the first call that sets the number of threads, as each thread's first parallel operation does,
        replaces the parent's pool without a lock (caffe2/utils/threadpool/pthreadpool-cpp.cc). If two threads replace
        the pool at the same time, one of them may find no pool and raise "Invalid thread pool!".
        """
        if cls.pending:
            torch.set_num_threads(torch.get_num_threads())
            cls.pending = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Fork._in_child)


class ThreadWorkers:
    def __init__(self, config: WorkerConfig, worker_args: WorkerArgs) -> None:
        self.config, self.worker_args = config, worker_args
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stopping = threading.Event()
        self.workers = [ThreadWorker(self, i) for i in range(config.num_workers)]
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
        """Does nothing, because threads do not wait for memory."""

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
