# SPDX-License-Identifier: Apache-2.0
"""Receives workers' replies, with a timeout and a watchdog, and replaces workers that died."""

from __future__ import annotations

import logging
import time

from ..fetching.failures import Failure
from ..workers.pool_workers import PoolWorkers
from ..workers.process_workers import Died, ProcessWorkers
from ..workers.thread_workers import ThreadWorkers
from ..workers.watchdog import Watchdog
from ..workers.worker import CRASHED, EPOCH, GIVE, STATE, TASK
from ..workers.worker_group import Answer, WorkerGroup
from .epoch_context import EpochContext
from .task_queue import Task, TaskQueue
from .worker_states import WorkerStates

_log = logging.getLogger("feedline")


class Replies:
    """Attributes:
    is_fatal: whether the last exception from `receive` ends the iterator.
    """

    def __init__(self, group: WorkerGroup, context: EpochContext, queue: TaskQueue, states: WorkerStates) -> None:
        self._group, self._context, self._queue, self._states = group, context, queue, states
        self._crashes: dict[int, Failure] = {}  # worker -> the error it sent before it ended
        self.is_fatal = False

    def receive(self, task: Task | None, timeout: float) -> Answer | None:
        """Waits for the reply to `task`, but returns the first reply to any task.

        If `task` is None, waits for workers' states, and returns None after each state.

        Args:
            timeout: seconds; 0 for no timeout.

        Raises:
            WorkerDiedError, StalledError: `is_fatal` is set to True.
            RuntimeError: timeout.
        """
        event = self._group.receive(0)
        deadline = time.monotonic() + timeout if timeout > 0 else None
        watchdog = None
        while True:
            if isinstance(event, Died):
                self._handle_death(event)
            elif event is not None:
                worker, answer = event
                if answer.kind == STATE:
                    self._states.receive(worker, answer)
                    if task is None:
                        return None
                    event = self._group.receive(0)
                    continue
                if answer.kind != CRASHED:
                    return answer
                self._note_crash(worker, answer)
            if watchdog is None:
                watchdog = Watchdog(self._group, self._awaited(task), self._context.settings.stall_timeout)
            try:
                slice_s = watchdog.step()
            except BaseException:
                self.is_fatal = True
                raise
            if deadline is not None:
                slice_s = min(slice_s, deadline - time.monotonic())
                if slice_s <= 0:
                    raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            progress, began = self._context.progress, time.monotonic()
            event = self._group.receive(slice_s)
            progress.wait_s = (progress.wait_s or 0.0) + time.monotonic() - began

    def _awaited(self, task: Task | None) -> list[int]:
        """Returns the workers that the watchdog observes."""
        if task is None:
            return self._states.missing()
        if self._context.in_order:
            return [task.worker]
        return sorted({task.worker for task in self._queue.tasks.values()})

    def _note_crash(self, worker: int, answer: Answer) -> None:
        self._crashes[worker] = answer.decode()
        if isinstance(self._group, (ThreadWorkers, PoolWorkers)):  # for other workers, the end of the process is
            # reported too
            self._handle_death(Died(worker, None))

    def _handle_death(self, event: Died) -> None:
        """Starts another process if bad samples are skipped or replaced and the task did not already kill a worker.
        Otherwise raises.
        """
        worker, crash, group = event.worker, self._crashes.pop(event.worker, None), self._group
        unanswered = self._queue.of_worker(worker)
        current = unanswered[0][1] if unanswered else None
        may_replace = self._context.settings.on_error != "raise" and isinstance(group, ProcessWorkers)
        if not may_replace or (current is not None and current.deaths >= 1):
            self.is_fatal = True
            error = event.error if crash is None else crash.exception()
            assert error is not None  # a worker without a process has crashed
            raise error
        assert isinstance(group, ProcessWorkers)
        _log.warning("%s Starting a new worker in its place.", event.error if crash is None else crash.summary)
        if current is not None:
            current.deaths += 1
        waiting = self._queue.answers_of(worker)
        group.respawn(worker, [block for answer in waiting for block in answer.occupied()])
        for attribute in self._context.progress.given.items():
            group.send(worker, 0, GIVE, attribute)
        group.send(worker, 0, EPOCH, self._states.epoch_restart(worker, len(waiting)))
        for number, task in unanswered:
            group.send(worker, number, TASK, task.index)
