# SPDX-License-Identifier: Apache-2.0
"""From an answer to the user's batch: bad samples refilled, errors raised, the place noted that a state names."""

from __future__ import annotations

import contextlib
import itertools
import logging
from typing import Any

from ..fetching import fetch
from ..workers.page_lock import PageLock
from ..workers.worker import BAD, DATA_AND_MORE, FAILED, TASK
from .answers import Answers
from .position import ITERABLE, NO_MORE
from .tasks import Task

_log = logging.getLogger("feedline")
KEPT = object()  # no batch: its samples wait for others


class Deliveries(Answers):
    """Of an iterator with workers: handing batches over. The last of its mixins."""

    _rest: dict[int, list[Any]]  # by worker: samples that it had left, too few for a batch
    _prints: dict[int, int]  # by a first batch's checksum: the worker that began with it
    _page_lock: PageLock | None
    _collate_fn: Any
    _drop_last: bool

    def _settle(self, number: int, task: Task) -> bool:
        """Makes a batch whole again that had bad samples, or that refills have shortened. True while it is away."""
        if self._refills is None:
            return False
        batch = self._cursor.delivered
        index = None
        if task.frame.kind == BAD:
            index = self._refilled(batch, task.index, task.frame.decode())
        elif self._in_order and task.deaths >= 0:
            reach = self._refills.batch(batch)
            if len(reach) < len(task.index) and task.index[: len(reach)] == reach:
                index = task.drawn = reach
                task.frame.drop()
        if index is None:
            return False
        task.frame = None
        if not index:
            self._give_up_after(number)
            return True
        task.index = index
        self._tasks_outstanding += 1
        self._worker_group.send(task.worker, number, TASK, index)
        return True

    def _give_up_after(self, number: int) -> None:
        """The order ends before this batch, for its samples were used as refills."""
        self._give_up_tasks()
        self._worker_group.skip_before(self._send_idx)
        self._rcvd_idx = self._send_idx
        self._tasks_outstanding = 0

    def _deliver(self, number: int, task: Task) -> Any:
        self._workers_num_tasks[task.worker] -= 1
        if self._settings.prefetches_by_bytes and task.frame.nbytes() > self._progress.batch_bytes:
            self._progress.batch_bytes = task.frame.nbytes()
            self._prefetch_by_bytes()
        if self._processes is not None:
            self._follow_the_loop(self._processes)
        self._put_next()
        kind, value = task.frame.kind, task.frame.decode()
        is_furthest = self._note_place(number)
        if kind == FAILED:
            self._pass(task.worker, task.drawn, task.samplers, is_furthest)
            raise value.exception()
        data, more = value if kind == DATA_AND_MORE else (value, NO_MORE)
        del value
        if self._page_lock is not None:
            refusal = self._page_lock.lock(task.worker)
            if refusal is not None:
                self._progress.page_lock_refusal = refusal
        if more:
            if "bad" in more:
                self._log_bad(more["bad"], self._cursor.delivered)
            if "print" in more:
                self._compare_print(task.worker, more["print"])
            if "short" in more:
                self._rest[task.worker] = data
                return KEPT
        if self._refills:
            self._cursor.refill_end = self._refills.end
        self._cursor.deliver(task.worker, task.drawn, more, task.samplers, is_furthest)
        return self._finished(data)

    def _note_place(self, number: int) -> bool | None:
        """With in_order=False: whether no task behind this one was answered. A state names those in front that wait."""
        if self._in_order or self._dataset_kind == ITERABLE:
            return None
        is_furthest = number >= self._border
        self._border = max(self._border, number + 1)
        self._cursor.waiting = [t.drawn for n, t in self._task_info.items() if n < self._border]
        return is_furthest

    def _compare_print(self, worker: int, crc: int) -> None:
        other = self._prints.setdefault(crc, worker)
        if other != worker and not self._progress.warned_unsharded:
            self._progress.warned_unsharded = True
            _log.warning(
                "workers %d and %d began with the same batch: this IterableDataset seems not to be sharded by "
                "get_worker_info(), so every sample would come %d times",
                other,
                worker,
                self._num_workers,
            )

    def _batch_of_rest(self) -> Any:
        """With central_batching, when all workers have ended: a batch of what they had left; None: there is none.

        Their positions in a state are in front of these samples, which are read again where it is loaded.
        """
        size = self._settings.batch_size
        if not self._rest or size is None:
            return None
        first = self._cursor.taken
        samples = list(itertools.chain.from_iterable(self._rest[worker] for worker in sorted(self._rest)))
        samples = samples[first : first + size]
        if not samples or (self._drop_last and len(samples) < size):
            self._rest = {}
            return None
        self._cursor.taken += len(samples)
        self._cursor.delivered += 1
        seed = self._settings.seed
        with fetch.untouched_generators() if seed is not None else contextlib.nullcontext():
            if seed is not None:
                fetch.seed_everything(seed, self._cursor.epoch, "collate", first)
            return self._finished(self._collate_fn(samples))
