# SPDX-License-Identifier: Apache-2.0
"""Tasks on their way to the workers: which worker gets which, how many are out, and those of the next epoch."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

from torch.utils.data import MapDataPipe

from ..options.auto_options import batches_ahead
from ..options.settings import Settings
from ..state import state
from ..state.loader_progress import LoaderProgress, epochs_of
from ..workers.worker import AHEAD, EPOCH, LAST, TASK, EpochStart
from .orders import lean_iterator
from .position import ITERABLE
from .process_count import ProcessCount, has_room_for
from .worker_states import WorkerStates

_log = logging.getLogger("feedline")


class Task:
    """An index for one worker, and what came of it."""

    __slots__ = ("deaths", "drawn", "frame", "index", "samplers", "worker")

    def __init__(self, worker: int, index: Any, samplers: list[Any] | None) -> None:
        self.worker, self.index, self.drawn = worker, index, index  # drawn: before refills
        self.samplers = samplers  # what those with a state said of themselves behind `index`
        self.frame: Any = None
        self.deaths = 0


class Tasks(WorkerStates):
    """Of an iterator with workers: giving tasks out."""

    _send_idx: int  # the next task's number
    _rcvd_idx: int  # of the next batch for the user
    _tasks_outstanding: int
    _owed_tasks: int  # below 0: as many that are not given out for now
    _task_info: dict[int, Task]  # given out, and not delivered yet
    _workers_num_tasks: list[int]
    _worker_queue_idx_cycle: Iterator[int]
    _sampler_ended: bool
    _border: int  # of tasks that a state of now passes over
    _ahead: NextEpoch | None
    _processes: ProcessCount | None  # with num_workers="auto": how many work
    _alive: int  # of the workers, the first so many have a process
    _delivered_s: float
    _waited_s: float

    def _working(self) -> int:
        """How many workers get tasks: the first so many."""
        return self._num_workers if self._processes is None else self._processes.count

    def _settle_processes(self, processes: ProcessCount) -> None:
        """Between two epochs: those that did not work end, but for one that may be tried; one more may come."""
        wanted = min(self._num_workers, processes.count + 1)
        while self._alive > wanted:
            self._alive -= 1
            self._worker_group.leave(self._alive)
        while (
            self._alive < wanted
            and has_room_for(self._worker_group.largest_bytes())
            and self._worker_group.rejoin(self._alive)
        ):
            self._alive += 1
        processes.has(self._alive)
        processes.begin_epoch()
        self._delivered_s = 0.0

    def _follow_the_loop(self, processes: ProcessCount) -> None:
        """At a hand-over: more or fewer workers get tasks from now on."""
        now_s, waited_s = time.monotonic(), self._progress.wait_s or 0.0
        before = processes.count
        if self._delivered_s:
            processes.note(now_s - self._delivered_s, max(0.0, waited_s - self._waited_s))
        self._delivered_s, self._waited_s = now_s, waited_s
        self._owed_tasks += (processes.count - before) * self._prefetch_factor
        if processes.count != before and processes.changes:
            _log.debug("DataLoader over %s: %s", type(self._settings.dataset).__qualname__, processes.changes[-1])

    def _try_put_index(self) -> None:
        if self._tasks_outstanding >= self._prefetch_factor * self._num_workers:
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        if self._ahead is not None:
            self._ahead.put(self)
            return
        try:
            index = self._next_index()
        except StopIteration:
            self._ask_last()
            if self._may_look_ahead():
                self._ahead = NextEpoch(self, self._settings, self._progress)
                self._ahead.put(self)
            return
        self._put_task(index)

    def _put_next(self) -> None:
        """In the place of one that was answered."""
        self._owed_tasks += 1
        while self._owed_tasks > 0:
            self._owed_tasks -= 1
            self._try_put_index()

    def _prefetch_by_bytes(self) -> None:
        """From the largest batch so far: more or fewer are made ahead from now on."""
        chosen = batches_ahead(self._settings.budget_bytes(), self._progress.batch_bytes, self._num_workers)
        self._progress.prefetch = chosen
        if chosen.value == self._prefetch_factor:
            return
        _log.info("DataLoader over %s: %s", type(self._settings.dataset).__qualname__, chosen)
        self._owed_tasks += (chosen.value - self._prefetch_factor) * self._working()
        self._prefetch_factor = self._worker_group.spec.ahead = chosen.value
        for worker in range(self._num_workers):
            if self._workers_status[worker]:
                self._worker_group.send(worker, 0, AHEAD, chosen.value)

    def _ask_last(self) -> None:
        """The order has ended: workers that live on begin the next epoch with the state that they have behind it."""
        if self._sampler_ended or not self._persistent_workers or self._dataset_kind == ITERABLE:
            return
        self._sampler_ended = True
        if self._asks_workers():
            for worker in range(self._num_workers):
                self._worker_group.send(worker, 0, LAST, self._mark)

    def _may_look_ahead(self) -> bool:
        if not (self._settings.prefetch_epochs and self._persistent_workers) or self._refills is not None:
            return False
        if self._asks_samplers or self._asks_workers():
            return False
        return self._dataset_kind != ITERABLE and not isinstance(self._dataset, MapDataPipe)

    def _put_task(self, index: Any) -> None:
        working = self._working()
        limit = self._prefetch_factor * working
        for _ in range(self._num_workers):
            worker = next(self._worker_queue_idx_cycle)
            if worker < working and self._workers_status[worker]:
                if self._in_order:
                    break
                if self._workers_num_tasks[worker] < limit // sum(self._workers_status[:working]):
                    break
        else:
            return
        self._task_info[self._send_idx] = Task(worker, index, self._samplers)
        self._workers_num_tasks[worker] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1
        self._worker_group.send(worker, self._send_idx - 1, TASK, index)

    def _give_up_tasks(self) -> None:
        for task in self._task_info.values():
            if task.frame is not None:
                task.frame.drop()
        self._task_info.clear()

    def state_cursor(self) -> state.Cursor:
        """What the state is to be made of: at the end of an epoch, the next one where that has begun."""
        return self._ahead.cursor if self._cursor.finished and self._ahead is not None else self._cursor


class NextEpoch:
    """prefetch_epochs=True: the order of the next epoch, drawn while the last batches of this one are on their way.

    Workers take messages in order, so they begin the epoch between the two epochs' tasks.
    """

    def __init__(self, iterator: Tasks, settings: Settings, progress: LoaderProgress) -> None:
        self.border = iterator._send_idx  # tasks from here on are of the next epoch
        progress.begin(settings)
        self.epoch = progress.epoch
        self.sampler_epochs = epochs_of(settings)
        self.cursor = state.Cursor(self.epoch, iterator._num_workers)
        self.cursor.base_seed = iterator._base_seed
        self.cursor.samplers, self.cursor.epochs = state.take_samplers(settings.order)
        indices = iter(iterator._index_sampler)
        self.cursor.randomness = state.take_randomness(settings)
        self._indices = lean_iterator(iterator._index_sampler, indices)
        start = EpochStart(self.epoch, dataset_epoch=progress.dataset_epoch(settings.dataset, next_epoch=True))
        for worker in range(iterator._num_workers):
            iterator._worker_group.send(worker, 0, EPOCH, start)

    def put(self, iterator: Tasks) -> None:
        index = next(self._indices, None)
        if index is not None:
            iterator._put_task(index)

    def adopt(self, iterator: Tasks) -> None:
        """The next epoch becomes the one that is iterated; what is left of this one is given up."""
        for number in [n for n in iterator._task_info if n < self.border]:
            task = iterator._task_info.pop(number)
            iterator._workers_num_tasks[task.worker] -= 1
            if task.frame is None:
                iterator._tasks_outstanding -= 1
            else:
                task.frame.drop()
        iterator._worker_group.skip_before(self.border)
        iterator._rcvd_idx = iterator._border = self.border
        iterator._sampler_iter, iterator._drawn, iterator._refills = self._indices, True, None
        iterator._cursor, iterator._resume = self.cursor, None
