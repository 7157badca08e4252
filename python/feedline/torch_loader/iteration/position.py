# SPDX-License-Identifier: Apache-2.0
"""The base of all iterators of a loader: indices, position, and bad samples."""

from __future__ import annotations

import collections
import itertools
import logging
import math
import os
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from torch.utils.data import _utils as torch_utils
from torch.utils.data import dataloader as torch_dataloader

from ...errors import ConfigError, Error
from ...loader.loader import BadSample
from ..fetching import fetch, own_generators
from ..fetching.failures import Failure
from ..fetching.fetch import FetchConfig
from ..options.devices import to_device
from ..options.settings import Settings
from ..state import state
from ..state.loader_progress import LoaderProgress
from .orders import RefillOrder, lean_iterator, pass_over

_log = logging.getLogger("feedline")
ITERABLE = torch_dataloader._DatasetKind.Iterable
NO_MORE: dict[str, Any] = {}


class Position:
    """Base class of the iterators. Draws and replays indices, counts delivered batches, and handles bad samples."""

    _taking: threading.RLock
    _progress: LoaderProgress
    _refills: RefillOrder | None
    _owner: int
    _samplers: list[Any] | None  # states of stateful samplers after the last index
    _last_passed: collections.deque[Any]  # the last skipped indices, which may be read again
    _before_iter: dict[str, Any] | None = None  # generators right before the order's iterator was made
    # set by the loader; called with the iterator at the end of an epoch
    _when_paused: Callable[[Any], None] | None = None
    _draw_order = staticmethod(lean_iterator)
    _draws_from_base_seed = False  # without workers, too
    _in_order = True  # batches come in the order of their indices
    # torch's iterator sets these
    _base_seed: Any
    _sampler_iter: Any
    _num_workers: int
    _dataset_kind: Any
    _index_sampler: Any
    _auto_collation: Any
    _pin_memory: Any
    _pin_memory_device: Any
    _dataset: Any

    def __new__(cls, *arguments: Any, **options: Any) -> Position:
        iterator = super().__new__(cls)
        iterator._taking = threading.RLock()  # reentrant: a dataset may call its own iterator
        return iterator

    def __next__(self) -> Any:
        """The next batch. If several threads iterate, each batch is returned to one thread, and all threads get
        StopIteration.
        """
        if self._is_inherited():  # fork() may have copied a held lock
            return super().__next__()  # type: ignore[misc]
        with self._taking:
            return super().__next__()  # type: ignore[misc]

    def _open_epoch(self, loader: Any) -> None:
        self._owner = os.getpid()
        self._take_settings(loader)
        resumed = self._progress.resumed_base_seed()
        if resumed is not None:
            self._base_seed = resumed
        self._cursor, self._resume = self._progress.open(self._settings)
        self._cursor.base_seed = self._base_seed if self._num_workers or self._draws_from_base_seed else None
        self._progress.latest = weakref.ref(self)
        self._drawn = False
        self._asks_samplers = self._dataset_kind != ITERABLE and state.are_stateful(self._settings.order)
        self._samplers: list[Any] | None = None
        self._last_passed: collections.deque[Any] = collections.deque(maxlen=0)
        self._refills = None
        self._bad_count = 0
        if self._settings.seed is not None and not self._progress.warned_generators:
            self._progress.warned_generators = True
            own_generators.warn_of(self._settings.own_generators())

    def _take_settings(self, loader: Any) -> None:
        """Reads the loader's current settings. Does not store the loader: with persistent workers, the loader
        references its iterator.
        """
        self._progress = loader._progress
        self._progress.settings = Settings.of(loader)

    @property
    def _settings(self) -> Settings:
        assert self._progress.settings is not None  # since _take_settings()
        return self._progress.settings

    def want_states(self, every: int) -> None:
        """Saves the dataset's state every `every` batches from now on. Without workers, states are saved only on
        demand.
        """

    def await_states(self) -> None:
        """Waits for the parts of a state that other processes send; without workers, there are no such parts."""

    def _keep_fetcher(self, fetcher: fetch.Fetcher) -> None:
        """Stores the fetcher, so that states of this epoch can be requested after the iterator has ended."""
        if fetcher.is_stateful():
            self._cursor.fetcher = fetcher

    def _is_inherited(self) -> bool:
        """Returns whether this process was forked from the process that created this iterator."""
        return os.getpid() != self._owner

    def _has_lost_workers(self) -> bool:
        """Returns whether persistent workers have ended without an error being raised."""
        return False

    def _inherited_error(self) -> Error:
        return Error(
            f"DataLoader: this iterator's workers belong to process {self._owner}, but this is process {os.getpid()}. "
            "Call iter(loader) in this process to create another iterator"
        )

    def _end_epoch(self) -> None:
        """Called after the last batch."""
        self._cursor.finished = True
        self._pause()

    def _pause(self) -> None:
        """Reports the loader as paused until the next epoch begins."""
        if self._when_paused is not None:
            self._when_paused(self)

    def _next_index(self) -> Any:
        if not self._drawn:
            self._draw_first()
        index = next(self._sampler_iter)
        if self._asks_samplers:
            self._samplers = state.take_samplers(self._settings.order)[0]
        return index

    def _draw_first(self) -> None:
        """Runs before the first index is drawn: saves the generators' states, or restores them and skips delivered
        indices.
        """
        self._drawn = True
        settings, cursor, resume = self._settings, self._cursor, self._resume or {}
        order = settings.order
        settings.seed_order(cursor.epoch)  # again, because persistent workers draw no seed from the generator
        state.put_generators(order, resume.get("order_generators"))
        # An iterator that is not a generator may have drawn when it was created.
        is_lazy = self._before_iter is None or isinstance(self._sampler_iter, types.GeneratorType)
        before = state.take_randomness(settings) if is_lazy else self._before_iter
        replay = resume.get("randomness")
        process = fetch.generator_states() if replay is not None and "torch" in replay else None
        taken = None if replay is None else state.randomness_of(replay)
        # The state was saved before the order was drawn, and the dataset's own state belongs to these generators. If
        # they still have the saved states, they continue as in an uninterrupted run.
        if taken is not None and not resume.get("drawn", True):
            process = None if cursor.fetcher is not None or (process and state.are_there(taken)) else process
        if taken is not None:
            state.put_randomness(order, taken)
            if self._asks_samplers and "ended" not in resume:
                state.load_samplers(order, cursor.samplers)
            self._sampler_iter = iter(self._index_sampler)
        cursor.randomness = before if taken is None else taken
        if self._dataset_kind == ITERABLE:
            return
        try:
            self._sampler_iter = self._draw_order(self._index_sampler, self._sampler_iter)
            if settings.on_error == "skip" and self._auto_collation:
                self._refills = RefillOrder(self._index_sampler, self._sampler_iter, resume.get("refill_end"))
                self._sampler_iter = self._refills
            if cursor.delivered and not self._asks_samplers:
                self._pass_over(cursor)
            elif cursor.delivered and cursor.passed() >= _length(self._index_sampler):
                state.meet_end(settings, cursor.samplers)
                self._sampler_iter = iter(())
            if cursor.waiting:
                if self._refills is not None and self._in_order:
                    raise ConfigError(
                        "load_state_dict: the state was saved with in_order=False, but on_error='skip' takes samples "
                        "from the end of the order. Resume with in_order=False and at least one worker"
                    )
                self._sampler_iter = itertools.chain(list(cursor.waiting), self._sampler_iter)
            if process is not None:
                self._sampler_iter = _ReplayedOrder(self._sampler_iter)
        finally:
            if process is not None:
                fetch.put_generator_states(process)

    def _pass_over(self, cursor: state.Cursor) -> None:
        last = None
        made = max(1, self._last_passed.maxlen or 0)  # the last indices are needed themselves
        passed = pass_over(self._sampler_iter, max(0, cursor.passed() - made))
        for _ in range(cursor.passed() - passed):
            last = next(self._sampler_iter, None)
            self._last_passed.append(last)
        expected = self._resume.get("last_index") if self._resume else None
        if expected is not None and state.fingerprint(last) != expected:
            raise ConfigError(
                "load_state_dict: the sampler's order differs from the order when the state was saved, so the position "
                "is invalid. The order must come from torch's, NumPy's or Python's generators, the sampler's own "
                "generator attribute, or its own state_dict()"
            )

    def _log_bad(self, failures: list[Failure], batch: int) -> None:
        settings = self._settings
        for failure in failures:
            message = f"{failure.summary}{failure.place}".replace("\n", "; ")
            record = failure.sample if isinstance(failure.sample, int) else None
            entry = BadSample(
                None,
                failure.path,
                None,
                record,
                None,
                "python",
                message,
                "data",
                self._cursor.epoch,
                batch,
                settings.on_error,
            )
            self._progress.errors.append(entry)
            _log.warning("bad sample, %s: %s", settings.on_error, message)
            self._bad_count += 1
            if settings.error_budget and self._bad_count > settings.error_budget:
                error = failure.exception()
                raise Error(
                    f"more than error_budget={settings.error_budget} bad samples in epoch {self._cursor.epoch}; the "
                    f"last one: {message}",
                    record=record,
                    stage="python",
                ) from error

    def _pass(self, worker: int, index: Any, samplers: list[Any] | None, is_furthest: bool | None = None) -> None:
        """Skips a batch that raised an error, now and when a state is loaded later."""
        if self._dataset_kind != ITERABLE:
            self._cursor.deliver(worker, index, NO_MORE, samplers, is_furthest)
        self._pause()

    def _refilled(self, batch: int, index: list[Any], bad: list[tuple[int, Failure]]) -> list[Any]:
        """Returns `index` with bad samples replaced from the end of the order, or removed if the order has no samples
        left.
        """
        self._log_bad([failure for _, failure in bad], batch)
        bad_positions = {position for position, _ in bad}
        filled: list[Any] = []
        for position, sample in enumerate(index):
            if position in bad_positions:
                filled += self._refills.refill(batch) if self._refills else []
            else:
                filled.append(sample)
        if self._refills and self._refills.drop_last and len(filled) < len(index):
            return []
        return filled

    def _finished(self, data: Any) -> Any:
        """Pins the batch and moves it to the device."""
        if self._pin_memory:
            data = torch_utils.pin_memory.pin_memory(data, self._pin_memory_device)
        device = self._settings.device
        return data if device is None else to_device(data, device)


def _length(order: Any) -> float:
    try:
        return len(order)
    except (TypeError, NotImplementedError):
        return math.inf


def fetch_config_of(iterator: Any) -> FetchConfig:
    return FetchConfig(
        iterable=iterator._dataset_kind == ITERABLE,
        auto_collation=iterator._auto_collation,
        collate_fn=iterator._collate_fn,
        drop_last=iterator._drop_last,
        on_error=iterator._settings.on_error,
        seed=iterator._settings.seed,
        leaves_short=iterator._settings.central_batching and iterator._settings.num_workers > 0,
        seeds_transforms=iterator._settings.seeds_transforms,
    )


class _ReplayedOrder:
    """The remainder of an order that was begun when the process's generators had other states.

    A sampler may draw at any step, so each step runs with the states that the generators had after the previous step.
    """

    def __init__(self, indices: Any) -> None:
        self._indices = indices
        self._states = fetch.generator_states()

    def __iter__(self) -> _ReplayedOrder:
        return self

    def __next__(self) -> Any:
        before = fetch.generator_states()
        fetch.put_generator_states(self._states)
        try:
            return next(self._indices)
        finally:
            self._states = fetch.generator_states()
            fetch.put_generator_states(before)
