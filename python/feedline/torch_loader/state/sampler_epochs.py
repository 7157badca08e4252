# SPDX-License-Identifier: Apache-2.0
"""Advances the epoch of samplers if `set_epoch` is not called, and leaves other samplers unchanged.

A changed `epoch` attribute shows that the user or a framework has set the epoch. If a framework sets the same epoch
again, for example when it evaluates twice in an epoch, only the `set_epoch` call itself reveals it. To count the calls
for each sampler, `set_epoch` of the sampler's class is wrapped. A sampler whose calls cannot be counted, such as a
mock, is never changed.
"""

from __future__ import annotations

import functools
import types
from typing import Any

_CALLS = "_feedline_set_epoch_calls"


class SamplerEpochs:
    """The epochs of a loader's samplers when they were last recorded. Used by the thread that iterates."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}  # index of the sampler -> (calls, epoch)

    def advance(self, samplers: list[Any]) -> None:
        """Increments the epoch of each sampler whose epoch was not set since the last call to `note`, and records the
        epochs of all samplers.
        """
        for place, sampler in enumerate(samplers):
            if (calls := _calls(sampler)) is not None and self._seen.get(place) == (calls, sampler.epoch):
                sampler.set_epoch(sampler.epoch + 1)
        self.note(samplers)

    def note(self, samplers: list[Any]) -> None:
        """Records the samplers' epochs as those of the epoch that begins, or of a loaded state."""
        self._seen.clear()
        for place, sampler in enumerate(samplers):
            if (calls := _calls(sampler)) is not None:
                self._seen[place] = (calls, sampler.epoch)

    def forget(self) -> None:
        """Called when the user sets the samplers' epochs, which are then not advanced."""
        self._seen.clear()


def _calls(sampler: Any) -> int | None:
    """Returns the number of `set_epoch` calls for a sampler that has an `epoch`; None if calls cannot be counted."""
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
