# SPDX-License-Identifier: Apache-2.0
"""Orders given by a user's sampler, whose indices are read when an epoch begins, and again to resume a state."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .._engine import Loader as EngineLoader
from .._engine import Sampling
from ..errors import ConfigError
from ..machine.ranks import ProcessRank

_WHERE = "loader: sampler"
# An epoch may have this many times the dataset's samples, or indices: more are taken for a sampler without an end.
_MOST_TIMES, _MOST_OF_SMALL = 64, 2**20
# A sampler without set_epoch() is iterated up to this many times to find the order of a state.
_MOST_PASSES = 1000


class SamplerOrder:
    """Reads the indices of a sampler for each epoch.

    Lists and arrays are read once, so each epoch has the same order. Other samplers are iterated when an epoch begins,
    after their ``set_epoch(epoch)`` is called if they have one. Attributes:

        is_share: whether the indices are those of one rank, as with torch's DistributedSampler.
        first: the sampling with which the engine's loader is created; for a sampler with a length, only that length.
    """

    def __init__(self, sampler: Any, samples: int) -> None:
        """`samples`: number of samples in the dataset. Raises ConfigError if `sampler` is not a sampler or has an
        invalid index.
        """
        if isinstance(sampler, str | bytes) or not isinstance(sampler, Iterable) or getattr(sampler, "ndim", 1) != 1:
            raise ConfigError(f"{_WHERE} must be a torch sampler or a sequence of indices, not {sampler!r:.200}")
        self._sampler: Any = sampler
        self._samples = samples
        self.is_share = hasattr(sampler, "num_replicas") and hasattr(sampler, "rank")
        self._set_epoch: Callable[[int], Any] | None = getattr(sampler, "set_epoch", None)
        self.is_fixed = isinstance(sampler, list | tuple | range) or hasattr(sampler, "tolist")
        self._held: Sampling | None = None  # of the epoch that begins next, if it was read already
        length = None if self.is_fixed else _length(sampler)
        if length is not None:
            self.first = Sampling.in_order(_numbers([i % samples for i in range(length)], samples), samples)
        else:
            self.first = self._read()
            self._held = None if self._set_epoch is not None else self.first

    def check(self, place: ProcessRank) -> None:
        """Raises ConfigError if the sampler does not fit this rank."""
        if place.world_size == 1:
            return
        sampler, name = self._sampler, type(self._sampler).__name__
        if self.is_share:
            if (sampler.rank, sampler.num_replicas) != (place.rank, place.world_size):
                raise ConfigError(
                    f"{_WHERE}: the {name} is for rank {sampler.rank} of {sampler.num_replicas}, but this process is "
                    f"rank {place.rank} of {place.world_size}; create both with the same numbers"
                )
        elif getattr(sampler, "generator", self) is None:
            raise ConfigError(
                f"{_WHERE}: the {name} has no generator, so each of the {place.world_size} ranks would draw a "
                "different order; pass shuffle=True or weights= instead, or the same "
                "generator=torch.Generator().manual_seed(N) "
                "on every rank"
            )

    def begin(self, engine: EngineLoader, epoch: int) -> None:
        """Sets the order of the epoch that begins now."""
        if self.is_fixed:
            return
        sampling, self._held = self._held or self._read(epoch), None
        engine.set_sampling(sampling)

    def forget(self) -> None:
        """Discards an order that was read to resume a state."""
        self._held = None

    def saved(self, state: dict[str, Any]) -> dict[str, Any]:
        """Returns the engine's state in the form that `restore` expects.

        Between epochs, the state contains the previous epoch's order, from which the sampler's position is found,
        unless set_epoch() determines the position.
        """
        has_place = self.is_fixed or self._set_epoch is None or _is_amid(state)
        return state if has_place else {**state, "sampling": 0}

    def restore(self, engine: EngineLoader, state: Mapping[str, Any]) -> None:
        """Restores a state.

        Raises:
            ConfigError: the sampler does not return the order with which the state was saved.
        """
        epoch, fingerprint = int(state["epoch"]), int(state["sampling"])
        if self.is_fixed or (_is_amid(state) and not fingerprint):
            engine.restore(dict(state))
            return
        if not _is_amid(state):
            if self._set_epoch is None and epoch > 0:
                self._find(epoch - 1, fingerprint)  # an order that does not repeat may begin with any epoch
                self._held = None
            engine.restore({**state, "sampling": engine.state()["sampling"]})
            return
        held = self._find(epoch, fingerprint)
        if held is None:
            raise ConfigError(
                f"load_state_dict: the {type(self._sampler).__name__} returns a different order than in epoch {epoch} "
                "of the state. To resume, a sampler must repeat its orders: give it set_epoch() or a new generator "
                "with the same seed, or use shuffle=True or weights="
            )
        engine.set_sampling(held)
        engine.restore(dict(state))
        if engine.epoch != epoch:  # the state was saved after an epoch's last batch
            held = self._read(engine.epoch)
            engine.set_sampling(held)
            begin = {"epoch": engine.epoch, "position": 0, "delivered": [], "left_out": 0}
            engine.restore({**state, **begin, "sampling": held.fingerprint})
        self._held = held

    def hand_over(self, engine: EngineLoader) -> None:
        """Passes the order that was read to resume a state, if any, to a new loader of the engine."""
        if self._held is not None:
            engine.set_sampling(self._held)

    def _find(self, epoch: int, fingerprint: int) -> Sampling | None:
        """Reads the sampler up to the epoch whose order has this fingerprint; returns None if no epoch has it."""
        if self._held is not None and self._held.fingerprint == fingerprint:
            return self._held
        for _ in range(1 if self._set_epoch is not None else min(epoch + 1, _MOST_PASSES)):
            sampling = self._read(epoch)
            if sampling.fingerprint == fingerprint:
                return sampling
        return None

    def _read(self, epoch: int = 0) -> Sampling:
        if self._set_epoch is not None:
            self._set_epoch(epoch)
        indices = self._indices(self._sampler)
        if not self.is_share:
            return Sampling.in_order(indices, self._samples)
        # all ranks have the fingerprint of the first one, so that one state is valid for all
        first = copy.copy(self._sampler)
        first.rank = 0
        whole = Sampling.in_order(self._indices(first), self._samples)
        return Sampling.in_order(indices, self._samples, whole.fingerprint)

    def _indices(self, sampler: Iterable[Any]) -> list[int]:
        values = sampler.tolist() if hasattr(sampler, "tolist") else _items(sampler, self._samples)
        return _numbers(values, self._samples)


def repeatable(sampler: Any, samples: int) -> Any:
    """Returns the items of an iterator as a list, because it can be read only once. Returns other samplers
    unchanged.
    """
    is_iterator = isinstance(sampler, Iterator) and not hasattr(sampler, "set_epoch")
    return _items(sampler, samples) if is_iterator else sampler


def _items(sampler: Iterable[Any], samples: int) -> list[Any]:
    most = max(_MOST_TIMES * samples, _MOST_OF_SMALL)
    values = list(itertools.islice(sampler, most + 1))
    if len(values) > most:
        raise ConfigError(
            f"{_WHERE} yields more than {most} indices for {samples} samples; limit an endless sampler to one epoch, "
            "for example with itertools.islice"
        )
    return values


def _is_amid(state: Mapping[str, Any]) -> bool:
    return bool(state["position"] or state["delivered"])


def _length(sampler: Any) -> int | None:
    try:
        return len(sampler)
    except (TypeError, NotImplementedError):
        return None


def _numbers(values: list[Any], samples: int) -> list[int]:
    """Converts indices to integers; the engine checks that they are below `samples`."""
    numbers = values if all(type(value) is int for value in values) else list(map(_number, itertools.count(), values))
    if numbers and min(numbers) < 0:
        position = next(i for i, number in enumerate(numbers) if number < 0)
        raise ConfigError(
            f"{_WHERE}: the index at position {position} is {numbers[position]}; indices must be from 0 to "
            f"{samples - 1}"
        )
    return numbers


def _number(position: int, value: Any) -> int:
    if isinstance(value, bool):
        raise ConfigError(
            f"{_WHERE}: the value at position {position} is {value!r}; to select samples with a mask, use "
            "ds.filter(mask)"
        )
    try:
        return operator.index(value)
    except TypeError:
        advice = "; pass the sampler of single indices, not the batch sampler" if isinstance(value, list) else ""
        raise ConfigError(
            f"{_WHERE}: the value at position {position} is {value!r:.80}, which is not an integer{advice}"
        ) from None
