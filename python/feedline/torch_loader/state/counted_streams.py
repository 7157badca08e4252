# SPDX-License-Identifier: Apache-2.0
"""MosaicML's and LitData's streams, which resume after a number of samples that only a loader can count.

The `state_dict` of these streams requires the number of delivered samples. Calling `load_state_dict` in the main
process before the workers start makes each worker skip its samples without reading them. Streams are recognised by the
parameters of their methods, so no package is imported, and subclasses are also recognised.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Mapping
from typing import Any

from ..options.settings import Settings


class CountedStream:
    """One epoch of a stream that resumes after a number of samples. Used in the main process, by the thread that
    iterates.
    """

    restarts_at_first_worker = False  # after a state, the first batch comes from the first worker at any position

    def __init__(self, settings: Settings, before: CountedStream | None) -> None:
        """`before`: the loader's previous epoch of the same dataset, if any."""
        self.dataset = settings.dataset
        self.before = before
        self._workers = settings.num_workers
        self._batch = settings.batch_size or 1
        self._samples = self._batches = 0  # delivered before this loader's first batch of the epoch

    def begin(self, epoch: int, pending: Mapping[str, Any] | None) -> None:
        """Called before the workers of `epoch` start. `pending`: the state from which the loader resumes, if any."""
        counted = None if pending is None else pending.get("counted")
        if counted is None:
            self._begin()
            return
        self._batches = pending["delivered"] if pending is not None else 0
        # `delivered` may have been changed since the state was saved, as skip() does.
        self._samples = counted["samples"] + (self._batches - counted["delivered"]) * counted["per_batch"]
        self._load(copy.deepcopy(counted["dataset"]), self._samples)

    def first_worker(self) -> int:
        """Returns the worker whose batch comes first, provided that this loader has not delivered a batch of the
        epoch.
        """
        return 0

    def state(self, delivered: int, next_epoch: bool) -> dict[str, Any]:
        """Returns the state after `delivered` batches of this epoch, or the state before the next epoch."""
        if next_epoch:
            delivered = samples = 0
        else:
            samples = self._samples + (delivered - self._batches) * self._per_batch()
        told = copy.deepcopy(self._tell(samples, next_epoch))
        return {"delivered": delivered, "samples": samples, "per_batch": self._per_batch(), "dataset": told}

    def epoch_to_tell(self) -> int | None:
        """Returns the epoch's number for persistent workers; None if they count epochs themselves."""
        return None

    def needs_fresh_workers(self) -> bool:
        """Returns whether the copies of the dataset in persistent workers cannot begin this epoch."""
        return False

    def _per_batch(self) -> int:
        """Returns the number of samples that count as one batch."""
        return self._batch

    def _begin(self) -> None:
        """Begins an epoch without a loader state: at the position set on the dataset or, if none is set, at the next
        epoch.
        """
        raise NotImplementedError

    def _load(self, state: dict[str, Any], samples: int) -> None:
        raise NotImplementedError

    def _tell(self, samples: int, next_epoch: bool) -> dict[str, Any]:
        raise NotImplementedError


class _Mosaic(CountedStream):
    """A MosaicML stream, whose `state_dict(num_samples, from_beginning)` counts the samples of all ranks, and whose
    epoch is a number in shared memory.
    """

    takes = ("num_samples", "from_beginning")
    restarts_at_first_worker = True

    def _begin(self) -> None:
        epoch = int(self.dataset.next_epoch)  # read now: workers increment it when they start
        told = self.dataset.state_dict(0, False)  # as set by its load_state_dict(), if that was called
        self._epoch = max(epoch, told["epoch"])
        if told["epoch"] >= epoch:
            self._samples = told["sample_in_epoch"]

    def _load(self, state: dict[str, Any], samples: int) -> None:
        self._epoch = state["epoch"]
        self.dataset.load_state_dict({**state, "sample_in_epoch": samples})

    def _tell(self, samples: int, next_epoch: bool) -> dict[str, Any]:
        state: dict[str, Any] = self.dataset.state_dict(samples, True)
        return {**state, "epoch": self._epoch + next_epoch}

    def _per_batch(self) -> int:
        return self._batch * int(os.environ.get("WORLD_SIZE", "1")) // (self.dataset.replication or 1)


class _Lit(CountedStream):
    """A LitData stream, whose `state_dict(num_samples_yielded, num_workers, batch_size)` counts the samples of this
    rank, and whose epochs start at 1.
    """

    takes = ("num_samples_yielded", "num_workers", "batch_size")
    _epoch: int
    _used: Any = None  # the dataset's state, once an epoch has started from it
    _splits_as_before = True  # the state has the same number of workers and batch size

    def _begin(self) -> None:
        self._prepare()
        before = self.before if isinstance(self.before, _Lit) else None
        told = getattr(self.dataset, "_state_dict", None)
        if told is not None and (before is None or told is not before._used):
            self._samples = told["num_samples_yielded"]
            self._use(copy.deepcopy(told))  # LitData writes into this dictionary
            return
        self.dataset.reset_state_dict()
        epoch = self.dataset.current_epoch
        # Without workers, the dataset increments it at the end of an epoch. Any other number was set by the user.
        is_ours = before is not None and epoch in (before._epoch, before._epoch + 1)
        self._epoch = before._epoch + 1 if before is not None and is_ours else epoch
        self.dataset.set_epoch(self._epoch)

    def _load(self, state: dict[str, Any], samples: int) -> None:
        self._prepare()
        if samples:
            world = state.get("world_size", 1)
            self._use({**state, "num_samples_yielded": samples, "sample_in_epoch": samples * world})
            return
        self.dataset.reset_state_dict()
        self._epoch = state["current_epoch"]
        self.dataset.set_epoch(self._epoch)

    def _use(self, state: dict[str, Any]) -> None:
        self._used = state
        self.dataset.load_state_dict(self._used)
        self._epoch = self.dataset.current_epoch = state[
            "current_epoch"
        ]  # set_epoch() does nothing if there is a state
        then = (state.get("num_workers", self._workers or 1), state.get("batch_size", self._batch))
        self._splits_as_before = then == (self._workers or 1, self._batch)

    def first_worker(self) -> int:
        """Follows LitData's order, in which workers deliver batches cyclically."""
        if not self._samples or not self._workers or not self._splits_as_before:
            return 0
        return self._samples // self._batch % self._workers

    def _prepare(self) -> None:
        """Sets the same attributes as LitData's own loader, so that samples are assigned to workers batch by batch."""
        self.dataset.set_batch_size(self._batch)
        self.dataset.set_num_workers(self._workers)

    def _tell(self, samples: int, next_epoch: bool) -> dict[str, Any]:
        state = self.dataset.state_dict(samples, self._workers, self._batch)
        return {**state, "current_epoch": self._epoch + next_epoch}

    def epoch_to_tell(self) -> int | None:
        return self._epoch

    def needs_fresh_workers(self) -> bool:
        """Workers' copies of the dataset keep the state with which the workers started until their epoch ends."""
        return self._used is not None or (isinstance(self.before, _Lit) and self.before._used is not None)


def counted_stream(settings: Settings, before: CountedStream | None = None) -> CountedStream | None:
    """Returns None if the dataset does not resume after a number of samples. `before`: the stream of the loader's
    previous epoch.
    """
    method = getattr(settings.dataset, "state_dict", None) if settings.iterable else None
    if not callable(method) or not callable(getattr(settings.dataset, "load_state_dict", None)):
        return None
    try:
        takes = tuple(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return None
    if before is not None:
        before.before = None  # only one epoch back is needed
        before = before if before.dataset is settings.dataset else None
    kinds: tuple[tuple[type[_Mosaic | _Lit], str], ...] = (_Mosaic, "next_epoch"), (_Lit, "set_num_workers")
    found = (kind for kind, has in kinds if takes == kind.takes and hasattr(settings.dataset, has))
    return next((kind(settings, before) for kind in found), None)
