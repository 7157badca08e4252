# SPDX-License-Identifier: Apache-2.0
"""The common part of the iterators for lowered loaders, which draw indices at the same points as torch."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import dataloader as torch_dataloader

from ..fetching import fetch
from ..iteration.orders import is_unique
from ..iteration.position import fetch_config_of
from ..iteration.single_iterator import SingleIterator
from ..options.settings import Settings
from ..state import state


class Late(Exception):
    """A batch did not arrive before the timeout or interruption in `cause`, but may still arrive."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class NativeIterator(SingleIterator):
    """One epoch in this process. Draws batches of indices in advance, as many as torch's workers would receive.

    Subclasses define how a batch of indices is begun and finished. `None` represents a batch that only the dataset
    itself can read or reject.
    """

    _is_alone = False  # no other thread works for it

    def __init__(self, loader: Any) -> None:
        self._before_iter = state.take_randomness(Settings.of(loader))
        with loader._progress.as_if_begun():
            torch_dataloader._BaseDataLoaderIter.__init__(self, loader)
        _check_numbers(loader)
        kind = "_MultiProcessingDataLoaderIter" if loader.num_workers else "_SingleProcessDataLoaderIter"
        self._profile_name = f"enumerate(DataLoader)#{kind}.__next__"
        self._begun: collections.deque[tuple[Any, Any]] = collections.deque()
        self._drawn_samplers: collections.deque[Any] = collections.deque()  # states of stateful samplers, one per begun
        # batch
        self._held: Any = None  # drawn but not begun
        self._workers: list[Any] = []  # for programs that read torch's attribute: there are no processes
        self._start(loader)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._before_iter = state.take_randomness(Settings.of(loader))
        with loader._progress.as_if_begun():
            torch_dataloader._BaseDataLoaderIter._reset(self, loader, first_iter)
        self._abandon()
        self._start(loader)

    def _start(self, loader: Any) -> None:
        self._open_epoch(loader)
        self._all_drawn = False
        settings = self._settings
        self._must_move = self._pin_memory or settings.device is not None
        self._drawn_batches = self._cursor.delivered
        # Samples read in this process must not change its random numbers if workers would have read them.
        self._seeded = settings.seed is not None or settings.num_workers > 0
        config = fetch_config_of(self)
        if self._seeded and settings.seed is None:
            config = dataclasses.replace(config, seed=self._base_seed)
        self._dataset_fetcher = fetch.make_fetcher(
            config, self._dataset, self._cursor.epoch, None, lambda stage, sample: None
        )
        self._keep_fetcher(self._dataset_fetcher)
        if settings.num_workers:
            self._ahead_count = loader.prefetch_factor * settings.num_workers
            self._draw_ahead()
        else:
            # Without workers, torch draws a batch of indices right before it reads it, which a sampler may observe.
            unique = is_unique(self._index_sampler) and settings.on_error != "skip"
            self._ahead_count = 2 if unique else 1
            # Not past the end, where torch's RandomSampler draws once more from its generator.
            self._count = len(self._index_sampler) - bool(state.generators_of(settings.order)) if unique else 0

    def _draw_ahead(self, awaited: bool = False) -> None:
        """Begins batches until enough are in flight. `awaited`: whether a batch that was begun earlier is still in
        flight.
        """
        while len(self._begun) < self._ahead_count:
            index, self._held = self._held, None
            if index is None:
                if self._all_drawn or (self._begun and not self._num_workers and self._drawn_batches >= self._count):
                    return
                try:
                    index = self._next_index()
                except StopIteration:
                    self._all_drawn = True
                    return
                if isinstance(index, Iterator):  # it can be iterated only once
                    index = list(index)
            if (awaited or self._begun) and not self._fits(index):
                self._held = index
                return
            if self._asks_samplers:
                self._drawn_samplers.append(self._samplers)
            self._begun.append((index, self._begin(index, self._drawn_batches)))
            self._drawn_batches += 1

    def __next__(self) -> Any:
        if self._is_inherited():  # fork() may have copied a held lock
            return self._next()
        with self._taking:
            if self._is_alone:
                return self._next()
            progress, began_s = self._progress, time.monotonic()
            try:
                return self._next()
            finally:
                progress.wait_s = (progress.wait_s or 0.0) + time.monotonic() - began_s

    def _next(self) -> Any:
        if torch.autograd._profiler_enabled():
            return super().__next__()  # with torch's name for profiles, which takes 4 microseconds
        data = self._next_data()
        self._num_yielded += 1
        return data

    def _next_data(self) -> Any:
        if not self._is_alone and self._is_inherited():
            raise self._inherited_error()
        if not self._begun:
            self._draw_ahead()
        if not self._begun:
            self._end_epoch()
            raise StopIteration
        drawn, begun = self._begun.popleft()
        index = drawn
        if self._refills is not None:
            index = self._refills.batch(self._cursor.delivered)[: len(index)]  # the other samples replaced bad ones
            if not index:
                self._end_here()
                raise StopIteration
        if self._num_workers:
            self._draw_ahead(awaited=True)
        try:
            data = self._finish(index, begun)
        except Late as late:
            self._begun.appendleft((drawn, begun))
            if self._timeout and not isinstance(late.cause, KeyboardInterrupt):
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from late.cause
            raise late.cause from None
        except StopIteration:  # all its samples were bad, and none are left to replace them
            self._end_here()
            raise
        except Exception:
            self._passed(index)  # continue with the next batch
            self._pause()
            raise
        self._passed(index)
        return self._finished(data) if self._must_move else data

    def _passed(self, index: Any) -> None:
        cursor = self._cursor
        cursor.advance(index, self._drawn_samplers.popleft() if self._drawn_samplers else None)
        if self._refills is not None:
            cursor.refill_end = self._refills.end

    def _end_here(self) -> None:
        self._abandon()
        self._all_drawn = True
        self._end_epoch()

    def _in_python(self, index: Any) -> Any:
        """Returns the batch as the dataset itself creates it, with the dataset's errors and replacements."""
        return self._fetch(index)[0]

    def _shutdown_workers(self) -> None:
        """torch's name. Abandons the batches in flight."""
        self._abandon()

    # -- defined by subclasses

    def _begin(self, index: Any, batch: int) -> Any:
        raise NotImplementedError

    def _finish(self, index: Any, begun: Any) -> Any:
        """`index` may be shorter than it was when the batch was begun.

        Raises:
            Late: the batch did not arrive in time, and can be requested again.
        """
        raise NotImplementedError

    def _fits(self, index: Any) -> bool:
        """Returns False if this batch can be started only while no other batch is in flight."""
        return True

    def _abandon(self) -> None:
        """Abandons batches that were begun."""
        self._begun.clear()
        self._drawn_samplers.clear()
        self._held = None


def _check_numbers(loader: Any) -> None:
    """Raises the same errors for invalid numbers as torch's iterators."""
    if loader.num_workers == 0 and loader.timeout != 0:
        raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
    if loader.num_workers > 0 and loader.prefetch_factor <= 0:
        raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
