# SPDX-License-Identifier: Apache-2.0
"""Tracks delivered batches: positions delivered out of order, unsharded streams, and leftover samples."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable
from typing import Any

from ..fetching import fetch
from .epoch_context import EpochContext
from .task_queue import TaskQueue

_log = logging.getLogger("feedline")


class DeliveredPositions:
    """With `in_order=False`, tracks the tasks that a state must list."""

    def __init__(self, context: EpochContext, queue: TaskQueue) -> None:
        self._context, self._queue = context, queue
        self._border = 0  # all delivered tasks have smaller numbers

    def begin_epoch(self, border: int) -> None:
        self._border = border

    def note(self, number: int) -> bool | None:
        """Returns True if no later task was delivered before `number`; None if batches are delivered in order. Updates
        the cursor's `waiting`.
        """
        context = self._context
        if context.in_order or context.iterable:
            return None
        is_furthest = number >= self._border
        self._border = max(self._border, number + 1)
        context.cursor.waiting = [task.drawn for n, task in self._queue.tasks.items() if n < self._border]
        return is_furthest


class ShardingCheck:
    """Warns once if two workers' first batches from an IterableDataset are the same."""

    def __init__(self, context: EpochContext) -> None:
        self._context = context
        self._worker_by_checksum: dict[int, int] = {}

    def note_first_batch(self, worker: int, checksum: int) -> None:
        progress = self._context.progress
        other = self._worker_by_checksum.setdefault(checksum, worker)
        if other != worker and not progress.warned_unsharded:
            progress.warned_unsharded = True
            _log.warning(
                "workers %d and %d began with the same batch: this IterableDataset does not seem to be sharded by "
                "get_worker_info(), so every sample would be repeated %d times",
                other,
                worker,
                self._context.num_workers,
            )


class Leftovers:
    """With `central_batching`, holds the samples that were left in each worker at its end, too few for a batch.

    The workers' positions in a state precede the leftover samples, so these are read again after the state is loaded.
    """

    def __init__(self, context: EpochContext, collate_fn: Callable[[list[Any]], Any], drop_last: bool) -> None:
        self._context, self._collate_fn, self._drop_last = context, collate_fn, drop_last
        self._samples: dict[int, list[Any]] = {}  # by worker

    def begin_epoch(self) -> None:
        self._samples = {}

    def put(self, worker: int, samples: list[Any]) -> None:
        self._samples[worker] = samples

    def take(self) -> list[Any] | None:
        """Returns the samples of the next batch after all workers have ended; None if too few are left."""
        cursor, size = self._context.cursor, self._context.settings.batch_size
        if not self._samples or size is None:
            return None
        first = cursor.taken
        samples = list(itertools.chain.from_iterable(self._samples[worker] for worker in sorted(self._samples)))
        samples = samples[first : first + size]
        if not samples or (self._drop_last and len(samples) < size):
            self._samples = {}
            return None
        cursor.taken += len(samples)
        cursor.delivered += 1
        return samples

    def collate(self, samples: list[Any]) -> Any:
        seed, cursor = self._context.settings.seed, self._context.cursor
        with fetch.untouched_generators() if seed is not None else contextlib.nullcontext():
            if seed is not None:
                fetch.seed_everything(seed, cursor.epoch, "collate", cursor.taken - len(samples))
            return self._collate_fn(samples)
