# SPDX-License-Identifier: Apache-2.0
"""Records the calls that created a dataset or a chain. A pickle contains these calls, and unpickling repeats them.

The engine's dataset objects hold threads, open files and addresses, so they cannot be sent to another process. Instead,
a pickle contains the calls that created the dataset: first a function in this package, such as ``feedline.open``, then
methods. A pickle therefore contains the arguments of the calls, including passwords and signatures in URLs, and must be
protected like these secrets.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import DataError

_RETURNS = ("Self", "Dataset", "Chain", "tuple[Self, ...]")  # annotations of methods that are recorded


class Call(NamedTuple):
    """A call. If the method returns several results, as ``split`` does, ``part`` is the index of the result to use."""

    name: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    part: int | None = None


class Recorded:
    """A mixin for classes whose instances are pickled and copied as the calls that created them.

    ``_calls`` contains the call to the function, named ``MODULE:FUNCTION``, followed by the method calls.
    """

    _calls: tuple[Call, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in reversed(cls.__mro__):
            for name, method in vars(base).items():
                if not name.startswith("_") and getattr(method, "__annotations__", {}).get("return") in _RETURNS:
                    setattr(cls, name, _recording(getattr(method, "__wrapped__", method)))

    def __reduce__(self) -> tuple[Any, ...]:
        from . import picklable  # imports multiprocessing, which `import feedline` avoids

        for call in self._calls[1:]:
            picklable.check(getattr(type(self), call.name), call.arguments, call.options)
        from . import plugins

        first = self._calls[0]
        extensions = plugins.needed(first.options if first.name == "data.sources:open" else {})
        return _repeat, (self._calls, self._proof(), *([extensions] if extensions else []))

    def __copy__(self) -> Any:
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def _proof(self) -> str | None:
        """Returns a value that must be the same after the calls are repeated, or None."""
        return None


def made_by(
    result: Any, function: str, arguments: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None
) -> Any:
    """Records in `result` that this package's ``MODULE:FUNCTION`` created it, and returns `result`."""
    result._calls = (Call(function, _copied(arguments), _copied(options or {})),)
    return result


def call_of(made: Recorded, function: str) -> Call | None:
    """Returns the call that created an object, if it was a call to ``function``, named ``MODULE:FUNCTION``."""
    first = made._calls[0] if made._calls else None
    return first if first is not None and first.name == function else None


def _recording(method: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        try:
            result = method(self, *arguments, **options)
        except TypeError:
            _explain_arguments(method, (self, *arguments), options)
            raise
        made, parts = ([result], False) if isinstance(result, Recorded) else (result, True)
        for number, one in enumerate(made):
            if one is not self and not one._calls:  # otherwise the method has already recorded the call
                step = Call(method.__name__, _copied(arguments), _copied(options), number if parts else None)
                one._calls = (*self._calls, step)
        return result

    return call


def _explain_arguments(method: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Raises an error with the method's parameters if they do not accept the arguments."""
    import inspect

    signature = inspect.signature(method)
    try:
        signature.bind(*arguments, **options)
    except TypeError as reason:
        _, *parameters = (one.replace(annotation=one.empty) for one in signature.parameters.values())
        shown = signature.replace(parameters=parameters, return_annotation=signature.empty)
        raise TypeError(f"{method.__name__}: {reason}; its parameters are {shown}") from None


def _copied(value: Any) -> Any:
    """Returns copies of lists and dicts, which the caller may change later, and other values unchanged."""
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(_copied, value))
    if type(value) is list:
        return list(map(_copied, value))
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    return value


def _repeat(calls: tuple[Call, ...], proof: str | None, extensions: Any = None) -> Any:
    if extensions is not None:
        from . import plugins

        plugins.load(extensions)
    first, *others = calls
    module, _, function = first.name.partition(":")
    made = getattr(importlib.import_module(f"feedline.{module}"), function)(*first.arguments, **first.options)
    for call in others:
        made = getattr(made, call.name)(*call.arguments, **call.options)
        if call.part is not None:
            made = made[call.part]
    if proof is not None and made._proof() != proof:
        raise DataError(
            f"unpickling {made!r}: its samples differ from those of the pickled dataset (fingerprint "
            f"{made._proof()}, was {proof}): the source has changed, or its path refers to a different source on "
            "this machine"
        )
    return made
