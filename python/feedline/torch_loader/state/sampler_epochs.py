# SPDX-License-Identifier: Apache-2.0
"""Samplers whose `set_epoch` was forgotten go on by one epoch; those that somebody cares for are left alone.

A sampler's `epoch` tells whether it was set to another one. That it was set to the same one again, as a framework does
that evaluates twice in an epoch, only the call itself tells. So the class of a sampler gets a `set_epoch` that counts
the calls in the sampler. One that cannot be counted, as a mock, is never called from here.
"""

from __future__ import annotations

import functools
import types
from typing import Any

_CALLS = "_feedline_set_epoch_calls"


class SamplerEpochs:
    """What one loader has seen of its samplers' epochs. Used by the thread that iterates."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}  # place -> (calls, epoch)

    def advance(self, samplers: list[Any]) -> None:
        """Sets those on by one that nobody has set since they were noted, and notes all."""
        for place, sampler in enumerate(samplers):
            if (calls := _calls(sampler)) is not None and self._seen.get(place) == (calls, sampler.epoch):
                sampler.set_epoch(sampler.epoch + 1)
        self.note(samplers)

    def note(self, samplers: list[Any]) -> None:
        """Where they stand now is where the epoch that begins, or that a state is of, has them."""
        self._seen.clear()
        for place, sampler in enumerate(samplers):
            if (calls := _calls(sampler)) is not None:
                self._seen[place] = (calls, sampler.epoch)

    def forget(self) -> None:
        """Somebody sets them: the next epoch is theirs."""
        self._seen.clear()


def _calls(sampler: Any) -> int | None:
    """How often `set_epoch` of a sampler that shows its epoch was called; None: it cannot be told."""
    attributes = getattr(sampler, "__dict__", None)
    if not isinstance(getattr(sampler, "epoch", None), int) or attributes is None or "set_epoch" in attributes:
        return None
    owner = next((kind for kind in type(sampler).__mro__ if "set_epoch" in vars(kind)), None)
    method = None if owner is None else vars(owner)["set_epoch"]
    if not isinstance(method, types.FunctionType):
        return None
    if not hasattr(method, _CALLS):
        try:
            owner.set_epoch = _counting(method)  # type: ignore[union-attr]
        except (TypeError, AttributeError):  # a class that may not be changed
            return None
    return int(attributes.get(_CALLS, 0))


def _counting(method: types.FunctionType) -> Any:
    @functools.wraps(method)
    def set_epoch(self: Any, *arguments: Any, **named: Any) -> Any:
        attributes = getattr(self, "__dict__", {})
        attributes[_CALLS] = attributes.get(_CALLS, 0) + 1
        return method(self, *arguments, **named)

    setattr(set_epoch, _CALLS, True)
    return set_epoch
