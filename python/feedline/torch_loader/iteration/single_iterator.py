# SPDX-License-Identifier: Apache-2.0
"""The iterator of loaders without workers: torch's iterator class with Feedline's errors and state."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data import dataloader as torch_dataloader

from ..fetching import fetch, stream_libraries
from ..fetching.fetch import BadSamplesError, make_fetcher
from ..options.settings import Settings
from ..state import state
from .position import ITERABLE, NO_MORE, Position, fetch_config_of

_log = logging.getLogger("feedline")


class SingleIterator(Position, torch_dataloader._SingleProcessDataLoaderIter):
    """The iterator for num_workers=0; it runs everything in the calling thread."""

    def __init__(self, loader: Any, wrap: Callable[[Any], Any] | None = None) -> None:
        """`wrap`: a function that returns the dataset to read in place of the loader's; None to read the loader's own
        dataset.
        """
        self._before_iter = state.take_randomness(Settings.of(loader))
        with loader._progress.as_if_begun():
            torch_dataloader._BaseDataLoaderIter.__init__(self, loader)
        self._profile_name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._dataset = self._dataset if wrap is None else wrap(self._dataset)
        self._open_epoch(loader)
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            torch.utils.data.graph_settings.apply_sharding(self._dataset, self._world_size, self._rank)
        resume = (self._resume or {}).get("workers")
        is_counted = self._progress.counted is not None and "counted" in (self._resume or {})
        resume = resume[0] if resume and not is_counted else None
        dataset_state = (resume or {}).get("state")
        if dataset_state is not None and dataset_state.get("dataset") is not None:
            fetch.load_dataset_state(self._dataset, dataset_state["dataset"])
            self._progress.has_loaded = True
        elif self._progress.has_loaded:
            self._forget_loaded()
        self._dataset_fetcher = self._make_fetcher()
        self._seeded = self._settings.seed is not None
        if self._dataset_kind == ITERABLE and resume is not None:
            _fast_forward(self._dataset_fetcher, resume, loader.batch_size)
            if resume.get("ended"):
                self._forget_loaded()
                self._dataset_fetcher = self._make_fetcher()  # as in an uninterrupted run
        if resume is not None and not resume.get("ended"):
            self._cursor.by_worker[0] |= resume
        self._keep_fetcher(self._dataset_fetcher)

    def _forget_loaded(self) -> None:
        stream_libraries.forget_loaded(self._settings.dataset)
        self._progress.has_loaded = False

    def _make_fetcher(self) -> fetch.Fetcher:
        return make_fetcher(fetch_config_of(self), self._dataset, self._cursor.epoch, None, lambda stage, sample: None)

    def _next_data(self) -> Any:
        try:
            index = self._next_index()
        except StopIteration:
            self._end_epoch()
            raise
        try:
            data, more = self._fetch(index)
        except StopIteration:
            self._end_epoch()
            raise
        except Exception:
            self._pass(0, index, self._samplers)
            raise
        self._cursor.deliver(0, index, more, self._samplers)  # the index before replacements
        return self._finished(data)

    def _fetch(self, index: Any) -> tuple[Any, dict[str, Any]]:
        fetcher, batch = self._dataset_fetcher, self._cursor.delivered
        while True:
            try:
                data = self._fetch_once(fetcher, index)
            except BadSamplesError as bad:
                index = self._refilled(batch, index, bad.bad)
                if not index:
                    raise StopIteration from None
                continue
            except StopIteration:
                raise
            except Exception as error:
                if fetcher.sample is not None:
                    path = None if fetcher.config.iterable else fetch.sample_path(fetcher.dataset, fetcher.sample)
                    error.add_note(f"Feedline: sample {fetcher.sample!r:.200}" + (f" (file {path})" if path else ""))
                raise
            if fetcher.bad:
                if self._settings.on_error == "replace" or fetcher.config.iterable:
                    self._log_bad(fetcher.bad, batch)
                fetcher.bad = []
            if self._refills:
                self._cursor.refill_end = self._refills.end
            return data, NO_MORE

    def _fetch_once(self, fetcher: fetch.Fetcher, index: Any) -> Any:
        if not self._seeded:
            return fetcher.fetch(index)
        with fetch.untouched_generators():
            return fetcher.fetch(index)

    def state_cursor(self) -> state.Cursor:
        return self._cursor


def _fast_forward(fetcher: fetch.Fetcher, entry: dict[str, Any], batch_size: int | None) -> None:
    own = entry.get("state")
    if own is not None and isinstance(fetcher, fetch.IterableFetcher):
        fetcher.restore(own)
    skip = entry["since"] if own is not None else entry["batches"]
    if skip and own is None:
        _log.warning(
            "the iterable dataset has no exact state, so the loader resumes by reading and dropping %d batches", skip
        )
    fetcher.skip(skip, batch_size)
