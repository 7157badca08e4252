# SPDX-License-Identifier: Apache-2.0
"""A state machine that chooses the number of active worker processes from the time that the training loop waits.

A long wait only triggers a trial; the batch rate decides, because a loop that computes on the same CPUs may wait longer
but step faster. src/tune does the same for threads.
"""

from __future__ import annotations

import os
import random
from typing import Any, Literal, NamedTuple

from ... import _engine
from ...machine import limits
from ..fetching import fetch
from ..options import stream_shares
from ..options.settings import Settings
from .seeding_functions import only_seeds

INTERVAL_S, INTERVAL_BATCHES = 0.5, 8  # shorter ones measure the scheduler
_NEVER_WAITS, _HARDLY_WAITS, _WAITS, _STARVES = 0.005, 0.015, 0.03, 0.3  # shares of the loop's time
_GAIN = 1.05  # required rate with one more process, relative to that before
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 2.0, 80.0  # before another trial, after a failed one
_A_PAUSE = 8  # usual steps: the loop did something else, such as an evaluation


def why_fixed(settings: Settings) -> str:
    """Returns why the number of worker processes of a loader with ``num_workers="auto"`` is fixed, or an empty string
    if the number can change.

    The number may only change if results do not depend on which worker reads a sample, because a new process reads the
    dataset's current state.
    """
    if settings.seed is None:
        return "without seed=, random numbers depend on the worker"
    if settings.iterable:
        return "an IterableDataset is sharded among its workers"
    if fetch.is_stateful(settings.dataset):
        return "the dataset in each worker has a state"
    if settings.worker_init_fn is not None and not only_seeds(settings.worker_init_fn):
        return "worker_init_fn may change the dataset of each worker"
    if stream_shares.asks_for_worker(settings.dataset):
        return "the dataset queries the worker's number"
    if settings.in_threads or settings.pool is not None or settings.prefetch_epochs:
        return "the number is fixed for worker threads, workers of a pool, and prefetch_epochs=True"
    return "" if settings.num_workers > 1 else "there is only one"


def process_count_of(settings: Settings) -> ProcessCount | None:
    """Returns None if the number of processes is fixed."""
    if not settings.adapts or why_fixed(settings):
        return None
    is_random = _engine.test_conditions()["random_threads"]
    is_off = os.environ.get("FEEDLINE_CONTROLLER") == "off"
    return ProcessCount(settings.num_workers, "random" if is_random else "off" if is_off else "auto")


def has_room_for(process_bytes: int) -> bool:
    """Returns whether this rank has enough available memory for another process of this size."""
    return limits.share_of_memory_left() > 2 * process_bytes


class Change(NamedTuple):
    """A change of the number of processes, `at_s` seconds after the first batch."""

    at_s: float
    before: int
    after: int
    why: str


class _Trial(NamedTuple):
    before: int
    rate: float  # batches per second before the trial


class ProcessCount:
    """Observes every batch, and adapts `count`, the number of processes to use, between 1 and `limit`."""

    def __init__(self, limit: int, mode: Literal["auto", "off", "random"] = "auto") -> None:
        """`mode`: "off" always uses the limit; "random", for tests, draws a number for every batch."""
        self.limit = self.count = limit
        self.changes: list[Change] = []
        self._mode = mode
        self._random = random.Random(limit)
        self._now_s = self._passed_s = self._waited_s = 0.0
        self._batches = 0
        self._trial: _Trial | None = None
        self._settling = False  # the first interval after a change includes both numbers
        self._pause_s, self._not_before_s = _FIRST_PAUSE_S, 0.0

    def note(self, step_s: float, wait_s: float) -> int:
        """Records a batch that was delivered `step_s` seconds after the previous batch, after a wait of `wait_s`
        seconds. Returns `count`.
        """
        if self._mode != "auto":
            self.count = self._random.randint(1, self.limit) if self._mode == "random" else self.limit
            return self.count
        self._now_s += step_s
        usual_s = self._passed_s / self._batches if self._batches else step_s
        if step_s - wait_s > _A_PAUSE * usual_s:
            return self.count
        self._passed_s, self._waited_s, self._batches = (
            self._passed_s + step_s,
            self._waited_s + wait_s,
            self._batches + 1,
        )
        if self._passed_s >= INTERVAL_S and self._batches >= INTERVAL_BATCHES:
            share, rate = self._waited_s / self._passed_s, self._batches / self._passed_s
            self._passed_s = self._waited_s = 0.0
            self._batches = 0
            self._judge(share, rate)
        return self.count

    def facts(self) -> dict[str, Any]:
        """For `stats()`."""
        changes = [change._asdict() for change in self.changes]
        return {"processes": self.count, "limit": self.limit, "changed": len(changes), "changes": changes}

    def begin_epoch(self) -> None:
        """Discards the measurements of the previous epoch."""
        self._passed_s = self._waited_s = 0.0
        self._batches, self._settling = 0, True

    def has(self, processes: int) -> None:
        """Sets the number of processes that exist in this epoch, which limits `count`."""
        self.limit, self.count = processes, min(self.count, processes)

    def _judge(self, share: float, rate: float) -> None:
        if self._settling:
            self._settling = False
        elif self._trial is not None:
            self._end_trial(self._trial, share, rate)
        elif share > _STARVES and self.count < self.limit:
            self._change(self.limit, "the loop waits most of the time: using all processes")
        elif self._now_s >= self._not_before_s:
            self._try(share, rate)

    def _try(self, share: float, rate: float) -> None:
        if share < _NEVER_WAITS and self.count > 1:
            self._trial = _Trial(self.count, rate)
            self._change(self.count - 1, "the loop never waits: trying fewer processes")
        elif share > _WAITS and self.count < self.limit:
            self._trial = _Trial(self.count, rate)
            self._change(self.count + 1, "the loop waits: trying more processes")

    def _end_trial(self, trial: _Trial, share: float, rate: float) -> None:
        self._trial = None
        is_kept = rate >= trial.rate * _GAIN if self.count > trial.before else share < _HARDLY_WAITS
        if is_kept:
            self._pause_s = _FIRST_PAUSE_S
            return
        self._not_before_s = self._now_s + self._pause_s
        self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)
        self._change(trial.before, "the previous number was faster")

    def _change(self, count: int, why: str) -> None:
        self.changes.append(Change(round(self._now_s, 1), self.count, count, why))
        self.count, self._settling = count, True
