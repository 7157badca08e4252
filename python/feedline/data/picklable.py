# SPDX-License-Identifier: Apache-2.0
"""Refuses to pickle a function that the unpickling process cannot import, with an error that names the operation."""

from __future__ import annotations

import copyreg
import functools
import inspect
import pickle
import sys
import types
from collections.abc import Callable, Mapping
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ..errors import ConfigError

_BY_NAME = (pickle.Pickler, pickle._Pickler, ForkingPickler)  # picklers that store functions as module and name


def check(method: Callable[..., Any], arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Raises ConfigError if an argument of the call holds a lambda, a nested function or an object of a local class.

    The check is skipped for picklers that store functions and classes by value, such as cloudpickle's and dill's.
    """
    unnamed = next((found for value in (*arguments, *options.values()) for found in _unnamed(value)), None)
    if unnamed is None or _stored_by_value():
        return
    given = inspect.signature(method).bind(None, *arguments, **options).arguments
    fields = f"fields={given['fields']!r}" if given.get("fields") is not None else ""
    raise ConfigError(
        f"pickling a dataset: {method.__name__}({fields}) was given {_described(unnamed)}, which another process "
        "cannot import; define it with def or class at module level, and pass that name"
    )


def _unnamed(value: Any) -> list[Any]:
    """Yields the functions and classes in a callable argument that cannot be imported by module and name."""
    if isinstance(value, functools.partial):
        return [found for part in (value.func, *value.args, *value.keywords.values()) for found in _unnamed(part)]
    if isinstance(value, types.MethodType):
        return _unnamed(value.__self__ if isinstance(value.__self__, type) else type(value.__self__))
    if isinstance(value, (types.FunctionType, type)):
        return [] if _has_name(value) else [value]
    if hasattr(value, "__wrapped__"):
        return _unnamed(value.__wrapped__)
    kind: Any = type(value)
    usual: Any = object
    reduces_itself = kind.__reduce_ex__ is not usual.__reduce_ex__ or kind.__reduce__ is not usual.__reduce__
    return [] if not callable(value) or reduces_itself or kind in copyreg.dispatch_table else _unnamed(kind)


def _has_name(value: Any) -> bool:
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _stored_by_value() -> bool:
    """Whether the running pickler, which is the `self` of a calling frame, stores functions by value."""
    frame = inspect.currentframe()
    while frame is not None:
        pickler = frame.f_locals.get("self")
        if isinstance(pickler, (pickle.Pickler, pickle._Pickler)):
            return type(pickler) not in _BY_NAME
        frame = frame.f_back
    return False


def _described(value: Any) -> str:
    if isinstance(value, type):
        return f"an object of the local class {value.__qualname__}"
    code = value.__code__
    kind = "a lambda" if value.__name__ == "<lambda>" else f"the nested function {value.__name__}"
    return f"{kind} ({code.co_filename}, line {code.co_firstlineno})"
