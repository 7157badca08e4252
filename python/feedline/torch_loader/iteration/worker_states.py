# SPDX-License-Identifier: Apache-2.0
"""Where a loader's workers stand: what they tell of their datasets, and what a worker begins an epoch with."""

from __future__ import annotations

import collections
import logging
from typing import Any

from ..fetching import fetch
from ..workers.worker import ASK, LAST, EpochStart
from .position import ITERABLE, Position

_log = logging.getLogger("feedline")


class WorkerStates(Position):
    """Of an iterator with workers: their states, asked for and told. The first of its mixins, upon `Position`.

    The attributes here are those that several of them use; `WorkerIterator` sets them.
    """

    _worker_group: Any  # ProcessWorkers, PoolWorkers or ThreadWorkers
    _shutdown: bool
    _broken: bool  # ended with an error
    _persistent_workers: bool
    _shared_seed: Any
    _prefetch_factor: int
    _mark: int  # of the epoch, for states that workers tell
    _unknown: dict[int, bool]  # workers whose state is awaited, and whether it is that behind the epoch
    _workers_status: list[bool]  # whether a worker has samples left in this epoch
    _ahead: Any  # tasks.NextEpoch, once that has begun

    def _may_have_state(self) -> bool:
        """Of an iterable dataset only the iterators in the workers may have one."""
        return self._dataset_kind == ITERABLE or fetch.is_stateful(self._dataset)

    def want_states(self, every: int) -> None:
        spec = self._worker_group.spec
        if not every or 0 < spec.wants_state <= every or not self._may_have_state():
            return
        if self._shutdown or self._is_inherited():
            return
        spec.wants_state = every  # of those that are started later, too
        for worker in range(self._num_workers):
            self._worker_group.send(worker, 0, ASK, every)
        if self._cursor.finished and self._persistent_workers and self._ahead is None:
            self._ask_behind_the_end()
        is_within = self._cursor.delivered and not self._cursor.finished
        if is_within and not self._progress.fresh_workers and fetch.is_stateful(self._dataset):
            _log.warning(
                "state_dict(): workers were not asked for their states before, so resuming from here reads the epoch "
                "again with a dataset as you make it, which knows nothing of the epochs before. Call state_dict() "
                "before the first epoch, or give snapshot_every_n_steps=1, if that matters"
            )

    def _ask_behind_the_end(self) -> None:
        """Nobody wanted states before the epoch ended: workers that live on still have what it left behind."""
        for worker in range(self._num_workers):
            if self._cursor.ends.get(worker) is None:
                self._cursor.ends.pop(worker, None)
                self._unknown[worker] = True
                self._worker_group.send(worker, 0, LAST, self._mark)

    def _asks_workers(self) -> bool:
        return bool(self._worker_group.spec.wants_state) and self._may_have_state()

    def _is_unknown(self, worker: int) -> bool:
        """Whether a state of this moment wants what this worker has yet to tell."""
        if worker not in self._unknown:
            return False
        if self._cursor.finished:
            return self._persistent_workers and worker not in self._cursor.ends
        if not self._workers_status[worker]:
            return False
        entry = self._cursor.by_worker[worker]
        return not entry["batches"] and entry["state"] is None and not self._unknown[worker]

    def _note_state(self, worker: int, frame: Any) -> None:
        mark, is_last, told = frame.decode()
        if mark != self._mark or worker not in self._unknown:  # of an epoch that was given up
            return
        if is_last:
            self._cursor.ends[worker] = told
            return
        self._unknown[worker] = True
        entry = self._cursor.by_worker[worker]
        if not entry["batches"] and entry["state"] is None:
            entry["state"], entry["since"] = told, 0

    def _epoch_start(self, worker: int, again: dict[int, list[Any]]) -> EpochStart:
        settings, entry = self._settings, self._cursor.by_worker[worker]
        dataset_epoch = self._progress.dataset_epoch(settings.dataset)
        start = EpochStart(self._cursor.epoch, self._shared_seed, dataset_epoch, batch_size=settings.batch_size)
        start.mark = self._mark if worker in self._unknown else None
        if self._resume is not None and self._resume.get("workers") and not self._is_counted():
            taken = self._resume["workers"][worker]
            start.state, start.since, start.ended = taken["state"], taken["since"], taken.get("ended", False)
            if not start.ended:
                entry |= taken
        if self._dataset_kind == ITERABLE:
            start.skip = entry["since"] if start.state is not None else entry["batches"]
            if start.skip and start.state is None:
                _log.warning(
                    "resuming an iterable dataset without an exact state: worker %d reads and drops %d batches",
                    worker,
                    start.skip,
                )
        start.again = again.get(worker, [])
        return start

    def _is_counted(self) -> bool:
        """Whether the stream itself passes over what was delivered before."""
        return self._resume is not None and "counted" in self._resume and self._progress.counted is not None

    def _order_to_read_again(self) -> dict[int, list[Any]]:
        """By worker: the batches that a map-style dataset with a state had read since it was asked for that."""
        entries = (self._resume or {}).get("workers") or []
        if self._dataset_kind == ITERABLE or not self._cursor.delivered or not self._in_order:
            return {}
        if self._asks_samplers:
            return {worker: entry.get("again", []) for worker, entry in enumerate(entries)}
        since = {worker: entry["since"] for worker, entry in enumerate(entries) if entry["since"]}
        if not since:
            return {}
        self._last_passed = collections.deque(maxlen=(max(since.values()) + 1) * self._num_workers)
        self._draw_first()
        passed = list(self._last_passed)
        first = self._cursor.delivered - len(passed)
        return {
            worker: [i for at, i in enumerate(passed, first) if at % self._num_workers == worker][-count:]
            for worker, count in since.items()
        }

    def _first_worker_behind(self) -> int:
        """Of a stream that is gone on with: whose batch comes first."""
        resume, counted = self._resume, self._progress.counted
        assert resume is not None  # or nothing of this epoch was delivered
        if counted is not None and (counted.restarts_at_first_worker or resume["num_workers"] != self._num_workers):
            return 0
        return int(resume["last_worker"] + 1) % self._num_workers
