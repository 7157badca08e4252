# SPDX-License-Identifier: Apache-2.0
"""Starts and ends worker processes while `num_workers="auto"` adapts their number to the loop."""

from __future__ import annotations

import logging
import time

from ..workers.process_workers import ProcessWorkers
from .epoch_context import EpochContext
from .process_count import ProcessCount, has_room_for
from .task_queue import TaskQueue

_log = logging.getLogger("feedline")


class ProcessControl:
    """Attributes:
    alive: the number of workers that have a process; these are always the first workers.
    """

    def __init__(self, processes: ProcessCount, context: EpochContext) -> None:
        self._processes, self._context = processes, context
        self.alive = min(context.num_workers, processes.count + 1)
        self._delivered_s = self._waited_s = 0.0
        processes.has(self.alive)

    def begin_epoch(self, workers: ProcessWorkers) -> None:
        """Ends all idle processes except one, which may be tried next, and starts that process if it is missing."""
        wanted = min(self._context.num_workers, self._processes.count + 1)
        while self.alive > wanted:
            self.alive -= 1
            workers.leave(self.alive)
        while self.alive < wanted and has_room_for(workers.largest_bytes()) and workers.rejoin(self.alive):
            self.alive += 1
        self._processes.has(self.alive)
        self._processes.begin_epoch()
        self._delivered_s = 0.0

    def note_delivery(self, queue: TaskQueue) -> None:
        """Called for each batch. May change the number of workers that receive tasks."""
        processes, context = self._processes, self._context
        now_s, waited_s = time.monotonic(), context.progress.wait_s or 0.0
        before = processes.count
        if self._delivered_s:
            processes.note(now_s - self._delivered_s, max(0.0, waited_s - self._waited_s))
        self._delivered_s, self._waited_s = now_s, waited_s
        queue.owed += (processes.count - before) * queue.prefetch
        if processes.count != before and processes.changes:
            _log.debug("DataLoader over %s: %s", type(context.settings.dataset).__qualname__, processes.changes[-1])
