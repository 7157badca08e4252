# SPDX-License-Identifier: Apache-2.0
"""Samplers whose `set_epoch` was forgotten go on by one epoch; those that somebody cares for are left alone.

A sampler's `epoch` tells whether it was set to another one. That it was set to the same one again, as a framework does
that evaluates twice in an epoch, only the call itself tells. So a sampler gets a `set_epoch` that counts its calls. One
that has a `set_epoch` of its own already, as a mock has, or no room for one, is never called from here.
"""

from __future__ import annotations

import types
import weakref
from typing import Any


class SamplerEpochs:
    """What one loader has seen of its samplers' epochs. Used by the thread that iterates."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}  # place -> (calls, epoch)

    def advance(self, samplers: list[Any]) -> None:
        """Sets those on by one that nobody has set since they were noted, and notes all."""
        for place, sampler in enumerate(samplers):
            counted = _counted(sampler)
            if counted is not None and self._seen.get(place) == (counted.calls, sampler.epoch):
                type(sampler).set_epoch(sampler, sampler.epoch + 1)
        self.note(samplers)

    def note(self, samplers: list[Any]) -> None:
        """Where they stand now is where the epoch that begins, or that a state is of, has them."""
        self._seen.clear()
        for place, sampler in enumerate(samplers):
            counted = _counted(sampler)
            if counted is not None:
                self._seen[place] = (counted.calls, sampler.epoch)

    def forget(self) -> None:
        """Somebody sets them: the next epoch is theirs."""
        self._seen.clear()


class _Counted:
    """Stands in a sampler for the `set_epoch` of its class."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = weakref.ref(sampler)
        self.calls = 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.calls += 1
        sampler = self._sampler()
        return None if sampler is None else type(sampler).set_epoch(sampler, *arguments, **named)

    def __reduce__(self) -> Any:
        # A copied or unpickled sampler has its class's own, for its attributes come after this.
        return getattr, (self._sampler(), "set_epoch")


def _counted(sampler: Any) -> _Counted | None:
    """The counting `set_epoch` of a sampler that shows its epoch, put there now if need be; None: it cannot be told."""
    if not isinstance(getattr(sampler, "epoch", None), int) or not callable(getattr(type(sampler), "set_epoch", None)):
        return None
    try:
        own = vars(sampler).get("set_epoch")
        if isinstance(own, _Counted):
            return own
        if own is None or (isinstance(own, types.MethodType) and own.__self__ is sampler):
            sampler.set_epoch = counted = _Counted(sampler)
            return counted
    except (TypeError, AttributeError):  # no attributes, or none that may be set
        pass
    return None
