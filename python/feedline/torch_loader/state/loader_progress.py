# SPDX-License-Identifier: Apache-2.0
"""A loader's progress through its epochs, shared by the loader and its iterators.

The progress references neither the loader nor an iterator: a loader with persistent workers references its iterator,
and an iterator may outlive its loader.
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Mapping
from typing import Any

from ...errors import ConfigError
from ...loader.loader import BadSample
from ..fetching import fetch
from ..fetching.stream_libraries import is_of_datasets, loses_its_buffer
from ..options.auto_options import Choice
from ..options.settings import Settings
from . import state
from .counted_streams import CountedStream, counted_stream
from .sampler_epochs import SamplerEpochs

_log = logging.getLogger("feedline")
_NEVER = 1 << 62  # batches between two states: only at the start and end of an epoch


class LoaderProgress:
    """Used only by the iterating thread, except `latest`, `cursor` and the counters, which other threads may read.

    Attributes:
        epoch: number of the next epoch, or of an epoch that is starting.
        cursor: position in the latest epoch.
        pending: the state from which the next epoch resumes.
        counted: the stream of the latest epoch, if it resumes after a number of samples.
        settings: the loader's arguments when the epoch began or when one of its attributes was last set.
        latest: the newest iterator.
        running: iterators that are within an epoch.
        fresh_workers: whether the workers were started for this epoch.
        has_loaded: whether the dataset in this process, without workers, received the state from which the previous
            epoch resumed.
        wants_state: whether a state was requested or loaded, so that later requests are likely.
        given: attributes set on the dataset in all workers, by name.
        errors: bad samples that were skipped or replaced.
        wait_s: seconds in ``next()`` in the latest epoch; None if not measured.
        page_lock_refusal: why the ring cannot be page-locked although there is a GPU; None if it can.
        unseen: whether the latest epoch has an iterator of another class, whose position is unknown.
        batch_bytes: size of the largest batch from a worker, if the number of prefetched batches depends on it.
        processes: number of active worker processes, if this number adapts to the loop.
        prefetch: number of batches in flight, chosen from `batch_bytes`.
        compared: the key and the result of comparing a user's class with the engine; the result describes the
        difference.
        native_rows, native_misses: number of samples passed to the engine, and number of those that the engine could
        not read.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.cursor: state.Cursor | None = None
        self.pending: dict[str, Any] | None = None
        self.counted: CountedStream | None = None
        self.settings: Settings | None = None  # None until an epoch begins
        self.latest: weakref.ref[Any] | None = None
        self.running: weakref.WeakSet[Any] = weakref.WeakSet()
        self.fresh_workers = True
        self.has_loaded = False
        self.wants_state = False
        self.given: dict[str, Any] = {}
        self.errors: list[BadSample] = []
        self.wait_s: float | None = None
        self.page_lock_refusal: str | None = None
        self.unseen = False
        self.warned_unsharded = self.warned_generators = False
        self.batch_bytes = 0
        self.processes: Any = None  # ProcessCount
        self.prefetch: Choice | None = None
        self.compared: tuple[Any, str] | None = None
        self.native_rows = self.native_misses = 0
        self._sampler_epochs = SamplerEpochs()

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes for pickle and copy: all except iterators, which belong to this object."""
        return {**self.__dict__, "settings": None, "compared": None, "counted": None, "latest": None, "running": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes, running=weakref.WeakSet())

    def is_fresh(self) -> bool:
        """Returns True if no epoch has begun and no state is pending."""
        return self.cursor is None and self.pending is None

    def iterator(self) -> Any:
        """Returns the newest iterator if it still exists."""
        return None if self.latest is None else self.latest()

    # -- epochs

    def begin(self, settings: Settings) -> None:
        """Sets generators and samplers to a loaded state, or to the new epoch, before any number is drawn."""
        order = settings.order
        if self.pending is not None:
            self.epoch = self.pending["epoch"]
            state.put_generators(order, self.pending.get("generators"))
            if "ended" in self.pending:
                state.drain(settings, self.pending)
        else:
            self._sampler_epochs.advance(state.samplers_of(order))
        settings.seed_order(self.epoch)
        self.counted = counted_stream(settings, self.counted)
        if self.counted is not None:
            self.counted.begin(self.epoch, self.pending)

    def open(self, settings: Settings) -> tuple[state.Cursor, dict[str, Any] | None]:
        """Starts an iterator's epoch. Returns the epoch's cursor, and the state from which the epoch resumes, if
        any.
        """
        resume, self.pending, self.unseen = self.pending, None, False
        cursor = state.Cursor(self.epoch, settings.num_workers)
        cursor.samplers, cursor.epochs = state.take_samplers(settings.order)
        if resume is not None and state.are_stateful(settings.order):
            cursor.samplers, cursor.ended = resume["samplers"], resume.get("ended")
        elif self.cursor is not None and self.cursor.finished and state.are_stateful(settings.order):
            cursor.samplers, cursor.ended = self.cursor.samplers, self.cursor.randomness_in_words(settings)
        if resume is not None:
            cursor.delivered, cursor.replay = resume["delivered"], resume.get("randomness")
            cursor.taken = resume.get("taken", 0)
            cursor.waiting = list(resume.get("waiting", ()))
            resume["workers"] = _fitting(resume, settings)
        self.cursor = cursor
        self.epoch += 1
        return cursor, resume

    def as_if_begun(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context for torch's part of an iterator's constructor, which draws from the process's generators.

        When an epoch is resumed, these draws must not change the generators, which are already set.
        """
        is_begun = self.pending is not None and self.pending.get("begun", False)
        return fetch.untouched_generators() if is_begun else contextlib.nullcontext()

    def may_use(self, ahead: Any, settings: Settings) -> bool:
        """Returns whether an epoch that was begun early is still valid."""
        if ahead is None or self.pending is not None or self.epoch != ahead.epoch:
            return False
        return bool(ahead.sampler_epochs == epochs_of(settings))

    def pass_unseen(self, settings: Settings) -> None:
        """Called when an epoch has begun with an iterator of another class, whose position is unknown.

        Raises:
            ConfigError: the loaded state is from the middle of an epoch, which that iterator cannot resume.
        """
        resume, self.pending = self.pending, None
        if resume is not None and resume["delivered"]:
            raise ConfigError(
                f"load_state_dict: the state was saved after {resume['delivered']} batches, but this loader's "
                "class overrides "
                "_get_iterator(), and its iterators begin at the first batch"
            )
        self.cursor, self.latest, self.unseen = state.Cursor(self.epoch, settings.num_workers), None, True
        self.epoch += 1

    def adopt(self, cursor: state.Cursor, settings: Settings) -> None:
        """Switches to an epoch that was begun early."""
        self._sampler_epochs.note(state.samplers_of(settings.order))
        self.cursor = cursor
        self.epoch += 1

    def set_epoch(self, epoch: int, settings: Settings) -> None:
        self.epoch = epoch
        for sampler in state.samplers_of(settings.order):
            if callable(getattr(sampler, "set_epoch", None)):
                sampler.set_epoch(epoch)
        self._sampler_epochs.forget()
        if callable(getattr(settings.dataset, "set_epoch", None)):
            settings.dataset.set_epoch(epoch)

    def dataset_epoch(self, dataset: Any, next_epoch: bool = False) -> int | None:
        """Returns the epoch to set in the datasets of persistent workers. Returns None for new workers, which have a
        current copy of the dataset.
        """
        if (self.fresh_workers and not next_epoch) or not callable(getattr(dataset, "set_epoch", None)):
            return None
        if self.counted is not None:
            return self.counted.epoch_to_tell()
        for name in ("epoch", "_epoch"):
            value = None if next_epoch else getattr(dataset, name, None)
            if value is not None:
                try:
                    return int(value)
                except (TypeError, ValueError):
                    continue
        return self.epoch if next_epoch else self.epoch - 1

    # -- states

    def state_dict(self, settings: Settings) -> dict[str, Any]:
        iterator = self.iterator()
        self.wants_state = True
        if iterator is not None:
            iterator.want_states(self.snapshot_steps(settings))
        if self.pending is not None:
            return dict(self.pending)
        if self.unseen:
            _log.warning("state_dict(): the state is empty, because this loader's class overrides _get_iterator()")
            return {}
        cursor = self.cursor
        if iterator is not None and cursor is iterator._cursor:
            iterator.await_states()
            cursor = iterator.state_cursor()
        own = self._unread_state(settings) if cursor is None else cursor.own_state()
        counted = self._counted_part(cursor)
        if cursor is not None and not cursor.finished:
            return state.to_json(cursor, settings, own) | counted
        lives_on = cursor is not None and settings.persistent_workers and iterator is not None
        epoch = self.epoch if cursor is None else cursor.epoch + 1
        base_seed = cursor.base_seed if cursor is not None and lives_on else None
        return state.of_next_epoch(cursor, epoch, settings, own, base_seed) | counted

    def _counted_part(self, cursor: state.Cursor | None) -> dict[str, Any]:
        """Returns the state of a stream that resumes after a number of samples, once an epoch has begun."""
        if cursor is None or self.counted is None:
            return {}
        return {"counted": self.counted.state(cursor.delivered, next_epoch=cursor.finished)}

    def _unread_state(self, settings: Settings) -> dict[str, Any] | None:
        """Returns the state of a map-style dataset that this process has not read yet. After iter(), an iterator saves
        the state itself.
        """
        if settings.num_workers or settings.iterable:
            return None
        own = fetch.state_of(settings.dataset)
        return None if own is None else {"dataset": own}

    def load_state_dict(self, saved: Mapping[str, Any], settings: Settings) -> None:
        self.wants_state = True
        if saved:
            self.pending = pending = state.check(saved, settings)
            # Now, not in iter(), so that set_epoch calls between the two take precedence.
            state.put_samplers(settings.order, pending["samplers"], pending["sampler_epochs"])
            self._sampler_epochs.note(state.samplers_of(settings.order))
            if "dataset_epoch" in pending and is_of_datasets(settings.dataset):
                settings.dataset.set_epoch(pending["dataset_epoch"])

    def resumed_base_seed(self) -> int | None:
        return None if self.pending is None else self.pending.get("base_seed")

    def snapshot_steps(self, settings: Settings) -> int:
        """Returns the number of batches between two states of a worker; 0 if no state has been requested yet."""
        if settings.snapshot_every_n_steps == "auto":
            # A stateful map-style dataset is meant to be saved, and a position does not include its state.
            return int(self.wants_state or (not settings.iterable and fetch.is_stateful(settings.dataset)))
        if settings.snapshot_every_n_steps is None:
            return _NEVER if self.wants_state else 0
        return int(settings.snapshot_every_n_steps) or _NEVER


def _fitting(resume: dict[str, Any], settings: Settings) -> list[dict[str, Any]]:
    """Returns the workers' dataset states if this loader has as many workers as the loader that saved them; otherwise
    an empty list.
    """
    entries: list[dict[str, Any]] = resume.get("workers") or []
    if entries and settings.iterable and loses_its_buffer(settings.dataset):
        # Earlier versions saved the dataset's states, which omit samples. Their batch counts are exact.
        within = not entries[0].get("ended")
        entries = [{**entry, "state": None, "since": 0} for entry in entries] if within else []
    if not entries or resume["num_workers"] == settings.num_workers:
        return entries
    if any(entry["state"] is not None for entry in entries):
        _log.warning(
            "load_state_dict: ignores the dataset states of %s worker(s), because this loader has %d worker(s)",
            resume["num_workers"],
            settings.num_workers,
        )
    return []


def epochs_of(settings: Settings) -> list[Any]:
    """The samplers' epochs."""
    return [getattr(sampler, "epoch", None) for sampler in state.samplers_of(settings.order)]
