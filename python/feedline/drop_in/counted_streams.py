# SPDX-License-Identifier: Apache-2.0
"""Streams of others that go on by a number of samples, which only a loader can count: MosaicML's and LitData's.

Their `state_dict` wants what was delivered, and their `load_state_dict`, called in the main process before the workers
begin, has each of these pass over its part without reading it. They are known by what these methods take, so no package
is imported, and subclasses are known as well.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Mapping
from typing import Any

from .settings import Settings


class CountedStream:
    """One epoch of such a dataset. Used in the main process, by the thread that iterates."""

    is_elastic = True  # another number of workers may go on
    begins_anew = False  # the first batch behind a state comes from the first worker, wherever the epoch stood

    def __init__(self, settings: Settings) -> None:
        self.dataset = settings.dataset
        self._workers = settings.num_workers
        self._batch = settings.batch_size or 1
        self._samples = self._batches = 0  # where the epoch was gone on with

    def begin(self, epoch: int, pending: Mapping[str, Any] | None) -> None:
        """Before the workers of `epoch` do; `pending` is the loader's state that it goes on from, if any."""
        counted = None if pending is None else pending.get("counted")
        if counted is None:
            self._begin(epoch)
            return
        self._batches = pending["delivered"] if pending is not None else 0
        # `delivered` may have been changed since the state was taken, as skip() does.
        self._samples = counted["samples"] + (self._batches - counted["delivered"]) * counted["per_batch"]
        self._load(copy.deepcopy(counted["dataset"]), self._samples, epoch)

    def state(self, delivered: int, next_epoch: bool) -> dict[str, Any]:
        """Of a loader that has delivered so many batches of this epoch, or is in front of the next one."""
        if next_epoch:
            delivered = samples = 0
        else:
            samples = self._samples + (delivered - self._batches) * self._per_batch()
        told = copy.deepcopy(self._tell(samples, next_epoch))
        return {"delivered": delivered, "samples": samples, "per_batch": self._per_batch(), "dataset": told}

    def epoch_to_tell(self, epoch: int) -> int | None:
        """What workers that live on call epoch number `epoch`; None: they find out themselves."""
        return None

    def _per_batch(self) -> int:
        """By how many samples a batch is counted."""
        return self._batch

    def _begin(self, epoch: int) -> None:
        raise NotImplementedError

    def _load(self, state: dict[str, Any], samples: int, epoch: int) -> None:
        raise NotImplementedError

    def _tell(self, samples: int, next_epoch: bool) -> dict[str, Any]:
        raise NotImplementedError


class _Mosaic(CountedStream):
    """`state_dict(num_samples, from_beginning)`: of all ranks, and the epoch is a number in shared memory."""

    takes = ("num_samples", "from_beginning")
    begins_anew = True

    def _begin(self, epoch: int) -> None:
        self._epoch = int(self.dataset.next_epoch)  # here: workers count it on when they begin

    def _load(self, state: dict[str, Any], samples: int, epoch: int) -> None:
        self._epoch = state["epoch"]
        self.dataset.load_state_dict({**state, "sample_in_epoch": samples})

    def _tell(self, samples: int, next_epoch: bool) -> dict[str, Any]:
        state: dict[str, Any] = self.dataset.state_dict(samples, True)
        return {**state, "epoch": self._epoch + next_epoch}

    def _per_batch(self) -> int:
        return self._batch * int(os.environ.get("WORLD_SIZE", "1")) // (self.dataset.replication or 1)


class _Lit(CountedStream):
    """`state_dict(num_samples_yielded, num_workers, batch_size)`: of this rank; its epochs count from 1."""

    takes = ("num_samples_yielded", "num_workers", "batch_size")

    def _begin(self, epoch: int) -> None:
        self._prepare()
        self.dataset.reset_state_dict()
        self._epoch = epoch + 1  # kept here: without workers the dataset goes on to the next one as it ends
        self.dataset.set_epoch(self._epoch)

    def _load(self, state: dict[str, Any], samples: int, epoch: int) -> None:
        if not samples:
            self._begin(state["current_epoch"] - 1)
            return
        self._prepare()
        world = state.get("world_size", 1)
        self.dataset.load_state_dict({**state, "num_samples_yielded": samples, "sample_in_epoch": samples * world})
        self._epoch = self.dataset.current_epoch = state["current_epoch"]  # set_epoch() leaves it behind a state

    def _prepare(self) -> None:
        """As LitData's own loader does: samples are shared among workers by the batch."""
        self.dataset.set_batch_size(self._batch)
        self.dataset.set_num_workers(self._workers)

    def _tell(self, samples: int, next_epoch: bool) -> dict[str, Any]:
        state = self.dataset.state_dict(samples, self._workers, self._batch)
        return {**state, "current_epoch": self._epoch + next_epoch}

    def epoch_to_tell(self, epoch: int) -> int | None:
        return epoch + 1


def counted_stream(settings: Settings) -> CountedStream | None:
    """None: the dataset is none of these, or its states are to be had without counting."""
    method = getattr(settings.dataset, "state_dict", None) if settings.iterable else None
    if not callable(method) or not callable(getattr(settings.dataset, "load_state_dict", None)):
        return None
    try:
        takes = tuple(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return None
    kinds = (_Mosaic, "next_epoch"), (_Lit, "set_num_workers")
    return next((kind(settings) for kind, has in kinds if takes == kind.takes and hasattr(settings.dataset, has)), None)
