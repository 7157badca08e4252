# SPDX-License-Identifier: Apache-2.0
"""What workers answer: batches, states, the ends of streams, and deaths. Waiting for them, with a watchdog."""

from __future__ import annotations

import logging
import time
from typing import Any

from torch.utils.data import _utils as torch_utils

from ..fetching.failures import Failure
from ..workers.pool_workers import PoolWorkers
from ..workers.process_workers import Died, ProcessWorkers
from ..workers.thread_workers import ThreadWorkers
from ..workers.watchdog import Watchdog
from ..workers.worker import CRASHED, END, EPOCH, GIVE, STATE, TASK
from .position import ITERABLE
from .tasks import Task, Tasks

_log = logging.getLogger("feedline")


class Answers(Tasks):
    """Of an iterator with workers: which task comes next, its answer, and what else comes meanwhile."""

    _timeout: float
    _crashes: dict[int, Failure]  # by worker: what it said before it ended

    def await_states(self) -> None:
        if self._shutdown or self._broken or self._is_inherited():
            return
        while any(self._is_unknown(worker) for worker in range(self._num_workers)):
            frame = self._receive(None)
            if frame is not None:
                self._take(frame)

    def _wanted(self) -> int | None:
        """The task that comes next; None at the end of the epoch."""
        border = self._send_idx if self._ahead is None else self._ahead.border
        while self._rcvd_idx < border:
            task = self._task_info.get(self._rcvd_idx)
            if task is not None:
                if task.frame is not None or self._workers_status[task.worker]:
                    return self._rcvd_idx
                del self._task_info[self._rcvd_idx]
            self._rcvd_idx += 1
        return None

    def _is_current(self, number: int) -> bool:
        return self._ahead is None or number < self._ahead.border

    def _wait(self, task: Task) -> int | None:
        """Until a task's answer is there; its number. None when something else changed."""
        return self._take(self._receive(task))

    def _take(self, frame: Any) -> int | None:
        """What a worker has answered; the number of the task, where that is a batch."""
        answered = self._task_info.get(frame.task)
        if answered is None:  # of an epoch that was given up
            frame.drop()
            return None
        self._tasks_outstanding -= 1
        if frame.kind == END:
            self._workers_status[answered.worker] = False
            self._cursor.ends[answered.worker] = frame.decode()
            if not self._persistent_workers:
                self._worker_group.leave(answered.worker)
            self._put_next()
            return None
        answered.frame = frame
        return frame.task

    def _receive(self, task: Task | None) -> Any:
        """A worker's answer to some task. Without one: a state that a worker has told, or nothing, will do too."""
        event = self._worker_group.receive(0)
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        watchdog = None
        while True:
            if isinstance(event, Died):
                self._handle_death(event)
            elif event is not None and event[1].kind == CRASHED:
                self._note_crash(*event)
            elif event is not None and event[1].kind == STATE:
                self._note_state(*event)
                if task is None:
                    return None
                event = self._worker_group.receive(0)
                continue
            elif event is not None:
                return event[1]
            if watchdog is None:
                if task is None:
                    awaited = [worker for worker in range(self._num_workers) if self._is_unknown(worker)]
                elif self._in_order:
                    awaited = [task.worker]
                else:
                    awaited = sorted({t.worker for t in self._task_info.values()})
                watchdog = Watchdog(self._worker_group, awaited, self._settings.stall_timeout)
            try:
                slice_s = watchdog.step()
            except BaseException:
                self._break()
                raise
            if deadline is not None:
                slice_s = min(slice_s, deadline - time.monotonic())
                if slice_s <= 0:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            began = time.monotonic()
            event = self._worker_group.receive(slice_s)
            self._progress.wait_s = (self._progress.wait_s or 0.0) + time.monotonic() - began

    def _note_crash(self, worker: int, frame: Any) -> None:
        self._crashes[worker] = frame.decode()
        if isinstance(self._worker_group, (ThreadWorkers, PoolWorkers)):  # of others a process's end follows
            self._handle_death(Died(worker, None))

    def _handle_death(self, event: Died) -> None:
        worker, crash = event.worker, self._crashes.pop(event.worker, None)
        error: Any = event.error if crash is None else crash.exception()
        mine = [
            (number, task) for number, task in self._task_info.items() if task.worker == worker and task.frame is None
        ]
        current = mine[0][1] if mine else None
        may_replace = self._settings.on_error != "raise" and isinstance(self._worker_group, ProcessWorkers)
        if not may_replace or (current is not None and current.deaths >= 1):
            self._break()
            raise error
        _log.warning("%s A fresh worker takes over.", event.error if crash is None else crash.summary)
        if current is not None:
            current.deaths += 1
        held = [t.frame for t in self._task_info.values() if t.frame is not None and t.worker == worker]
        self._worker_group.respawn(worker, [block for frame in held for block in frame.occupied()])
        for given in self._progress.given.items():
            self._worker_group.send(worker, 0, GIVE, given)
        start = self._epoch_start(worker, {})
        if self._dataset_kind == ITERABLE:
            entry = self._cursor.by_worker[worker]
            start.state, start.skip = entry["state"], len(held)
            start.skip += entry["since"] if start.state is not None else entry["batches"]
        self._worker_group.send(worker, 0, EPOCH, start)
        for number, task in mine:
            self._worker_group.send(worker, number, TASK, task.index)

    def _break(self) -> None:
        self._broken = True
        self._pause()
        self._shutdown_workers()

    def _shutdown_workers(self) -> None:
        if self._shutdown or torch_utils is None or torch_utils.python_exit_status in (True, None):
            return
        self._shutdown = True
        if self._worker_group is not None:
            self._give_up_tasks()
            self._worker_group.close()
