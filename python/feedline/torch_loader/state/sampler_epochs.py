# SPDX-License-Identifier: Apache-2.0
"""Advances the epoch of samplers whose `set_epoch` is not called, and leaves others unchanged.

A changed `epoch` shows that it was set. If it was set to the same value, as by a framework that evaluates twice in an
epoch, only the call shows it, so `set_epoch` of the sampler's class is wrapped to count the calls in the sampler. A
sampler whose calls cannot be counted, such as a mock, is never changed.
"""

from __future__ import annotations

import functools
import types
from typing import Any

_CALLS = "_feedline_set_epoch_calls"


class SamplerEpochs:
    """The epochs of a loader's samplers when it last looked. Used by the thread that iterates."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}  # index of the sampler -> (calls, epoch)

    def advance(self, samplers: list[Any]) -> None:
        """Increments the epoch of samplers for which it was not set since the last note, and notes all."""
        for place, sampler in enumerate(samplers):
            if (calls := _calls(sampler)) is not None and self._seen.get(place) == (calls, sampler.epoch):
                sampler.set_epoch(sampler.epoch + 1)
        self.note(samplers)

    def note(self, samplers: list[Any]) -> None:
        """Notes the samplers' epochs as those of the epoch that begins or of a loaded state."""
        self._seen.clear()
        for place, sampler in enumerate(samplers):
            if (calls := _calls(sampler)) is not None:
                self._seen[place] = (calls, sampler.epoch)

    def forget(self) -> None:
        """The user sets the samplers' epochs: they are not advanced."""
        self._seen.clear()


def _calls(sampler: Any) -> int | None:
    """The number of `set_epoch` calls for a sampler with an `epoch`; None if they cannot be counted."""
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
        except (TypeError, AttributeError):  # an immutable class
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
