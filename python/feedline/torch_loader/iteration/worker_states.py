# SPDX-License-Identifier: Apache-2.0
"""The states of the datasets in a loader's workers: requests and receives them, and sends them back at the start of an
epoch.
"""

from __future__ import annotations

import logging
from typing import Any

from ..fetching import fetch
from ..workers.worker import ASK, LAST, EpochStart
from ..workers.worker_group import Answer, WorkerGroup
from .epoch_context import EpochContext
from .task_queue import TaskQueue

_log = logging.getLogger("feedline")


class WorkerStates:
    """Attributes:
    mark: number of the epoch; states from other epochs are ignored.
    """

    def __init__(self, group: WorkerGroup, context: EpochContext, queue: TaskQueue) -> None:
        self._group, self._context, self._queue = group, context, queue
        self.mark = 0
        self._requested: dict[int, bool] = {}  # worker -> whether its state after the epoch was requested or received
        self._has_requested_last = False

    def begin_epoch(self, workers: list[int]) -> None:
        """`workers`: the workers that read in this epoch."""
        self.mark += 1
        self._requested = dict.fromkeys(workers, False) if self.are_saved() else {}
        self._context.cursor.keeps_indices = self._context.saves_samplers and self.are_saved()
        self._has_requested_last = False

    def are_saved(self) -> bool:
        return bool(self._group.config.wants_state) and may_have_state(self._context)

    def request(self, every: int) -> bool:
        """Requests a state every `every` batches. Returns False if workers already send states, or if the dataset has
        no state.
        """
        config, context = self._group.config, self._context
        if not every or 0 < config.wants_state <= every or not may_have_state(context):
            return False
        config.wants_state = every  # also for workers that start later
        for worker in range(context.num_workers):
            self._group.send(worker, 0, ASK, every)
        return True

    def request_after_epoch(self) -> None:
        """Requests the states from the end of an epoch, which persistent workers still have."""
        cursor = self._context.cursor
        for worker in range(self._context.num_workers):
            if cursor.ends.get(worker) is None:
                cursor.ends.pop(worker, None)
                self._requested[worker] = True
                self._group.send(worker, 0, LAST, self.mark)

    def request_last(self) -> None:
        """Called at the end of the order, so that persistent workers send the state from which the next epoch
        begins.
        """
        if self._has_requested_last or not self._context.persistent or self._context.iterable:
            return
        self._has_requested_last = True
        if self.are_saved():
            for worker in range(self._context.num_workers):
                self._group.send(worker, 0, LAST, self.mark)

    def missing(self) -> list[int]:
        """Returns the workers whose state is needed for the loader's state but has not arrived."""
        return [worker for worker in range(self._context.num_workers) if self._is_missing(worker)]

    def _is_missing(self, worker: int) -> bool:
        if worker not in self._requested:
            return False
        cursor = self._context.cursor
        if cursor.finished:
            return self._context.persistent and worker not in cursor.ends
        if not self._queue.active[worker]:
            return False
        entry = cursor.by_worker[worker]
        return not entry["batches"] and entry["state"] is None and not self._requested[worker]

    def receive(self, worker: int, answer: Answer) -> None:
        mark, is_last, state = answer.decode()
        if mark != self.mark or worker not in self._requested:  # from an abandoned epoch
            return
        if is_last:
            self._context.cursor.ends[worker] = state
            return
        self._requested[worker] = True
        entry = self._context.cursor.by_worker[worker]
        if not entry["batches"] and entry["state"] is None:
            entry["state"], entry["since"] = state, 0

    def epoch_start(self, worker: int, again: list[Any]) -> EpochStart:
        """Returns the message that starts the epoch in a worker. `again`: batches that the worker reads once more, to
        restore the dataset's state.
        """
        context, entry = self._context, self._context.cursor.by_worker[worker]
        settings, resume = context.settings, context.resume
        dataset_epoch = context.progress.dataset_epoch(settings.dataset)
        start = EpochStart(context.cursor.epoch, context.shared_seed, dataset_epoch, batch_size=settings.batch_size)
        start.mark = self.mark if worker in self._requested else None
        if resume is not None and resume.get("workers") and not self._skips_by_count():
            saved = resume["workers"][worker]
            start.state, start.since, start.ended = saved["state"], saved["since"], saved.get("ended", False)
            if not start.ended:
                entry |= saved
        if context.iterable:
            start.skip = entry["since"] if start.state is not None else entry["batches"]
            if start.skip and start.state is None:
                _log.warning(
                    "the iterable dataset has no exact state, so worker %d resumes by reading and dropping %d batches",
                    worker,
                    start.skip,
                )
        start.again = again
        return start

    def epoch_restart(self, worker: int, waiting: int) -> EpochStart:
        """Returns the message for a worker that replaces a dead worker with `waiting` undelivered replies."""
        start = self.epoch_start(worker, [])
        if self._context.iterable:
            entry = self._context.cursor.by_worker[worker]
            start.state, start.skip = entry["state"], waiting
            start.skip += entry["since"] if start.state is not None else entry["batches"]
        return start

    def _skips_by_count(self) -> bool:
        """Returns whether the stream itself skips the samples that were already delivered."""
        resume = self._context.resume
        return resume is not None and "counted" in resume and self._context.progress.counted is not None

    def first_worker(self) -> int:
        """Returns the worker that sends the first batch of the epoch."""
        context, counted, resume = self._context, self._context.progress.counted, self._context.resume
        if context.iterable and context.cursor.delivered:
            assert resume is not None  # otherwise no batch of this epoch was delivered
            fresh = resume["num_workers"] != context.num_workers
            if counted is not None and (counted.restarts_at_first_worker or fresh):
                return 0
            return int(resume["last_worker"] + 1) % context.num_workers
        if counted is not None:
            return counted.first_worker()
        return context.cursor.delivered % context.num_workers


def may_have_state(context: EpochContext) -> bool:
    """Returns whether the dataset may have a state. For an iterable dataset, this is known only from the iterators in
    the workers.
    """
    return context.iterable or fetch.is_stateful(context.dataset)
