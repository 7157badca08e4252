# SPDX-License-Identifier: Apache-2.0
"""The calls that made a dataset or a chain. Pickle stores them, and unpickling repeats them.

An engine's dataset holds threads, open files and addresses, so it cannot go to another process. What made it can: a
call of a function of this package, such as ``feedline.open``, and calls of methods. A pickle therefore holds what the
calls were given, passwords and signatures in URLs among it: it must be kept as secret as these.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import DataError

_RETURNS = ("Self", "Dataset", "Chain", "tuple[Self, ...]")  # annotations of methods that are recorded


class Call(NamedTuple):
    """A call. Of a method that gives several results (``split``), ``part`` is the number of this one."""

    name: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    part: int | None = None


class Recorded:
    """A mixin of classes whose instances pickle and copy by the calls that made them.

    ``_calls`` is the function's call, named ``MODULE:FUNCTION``, and those of methods after it.
    """

    _calls: tuple[Call, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in reversed(cls.__mro__):
            for name, method in vars(base).items():
                if not name.startswith("_") and getattr(method, "__annotations__", {}).get("return") in _RETURNS:
                    setattr(cls, name, _recording(getattr(method, "__wrapped__", method)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _repeat, (self._calls, self._proof())

    def __copy__(self) -> Any:
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def _proof(self) -> str | None:
        """What must be equal after the calls were repeated, if anything."""
        return None


def made_by(
    result: Any, function: str, arguments: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None
) -> Any:
    """`result`, which remembers that ``MODULE:FUNCTION`` of this package made it."""
    result._calls = (Call(function, _kept(arguments), _kept(options or {})),)
    return result


def _recording(method: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        result = method(self, *arguments, **options)
        made, parts = ([result], False) if isinstance(result, Recorded) else (result, True)
        for number, one in enumerate(made):
            if one is not self and not one._calls:  # else the method itself has recorded it
                step = Call(method.__name__, _kept(arguments), _kept(options), number if parts else None)
                one._calls = (*self._calls, step)
        return result

    return call


def _kept(value: Any) -> Any:
    """Lists, dicts and iterators as they are now: the caller may change or use them up."""
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(_kept, value))
    if type(value) is list:
        return list(map(_kept, value))
    if type(value) is dict:
        return {key: _kept(one) for key, one in value.items()}
    return value


def _repeat(calls: tuple[Call, ...], proof: str | None) -> Any:
    first, *others = calls
    module, _, function = first.name.partition(":")
    made = getattr(importlib.import_module(f"feedline.{module}"), function)(*first.arguments, **first.options)
    for call in others:
        made = getattr(made, call.name)(*call.arguments, **call.options)
        if call.part is not None:
            made = made[call.part]
    if proof is not None and made._proof() != proof:
        raise DataError(
            f"unpickling {made!r}: its samples are not those of the dataset that was pickled (fingerprint "
            f"{made._proof()}, was {proof}): the source has changed, or is another one in this process"
        )
    return made
