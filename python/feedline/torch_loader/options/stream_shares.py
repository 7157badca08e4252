# SPDX-License-Identifier: Apache-2.0
"""Determines from a dataset's code, without running it, whether the dataset shards its samples among workers."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any

from torch.utils.data import IterableDataset

# Functions that return the current worker: torch's, and webdataset's wrapper.
_QUESTIONS = frozenset(("get_worker_info", "pytorch_worker_info"))
# Packages that shard their datasets in code of other classes, according to their documentation.
_SHARING = frozenset(("litdata", "streaming"))
_DEEPEST = 4  # nested datasets
_LONGEST = 100  # list of datasets or transforms


def how_shared(dataset: Any, worker_init_fn: Any = None) -> str:
    """Returns a description of how samples are shared; empty if unknown, in which case every worker may read all
    samples.
    """
    if worker_init_fn is not None and _asks(worker_init_fn):
        return "worker_init_fn queries the worker's number"
    return _how(dataset, 0)


def asks_for_worker(dataset: Any, depth: int = 0) -> bool:
    """Returns whether a map-style dataset, its transforms or nested datasets query the worker's number."""
    if isinstance(dataset, types.FunctionType | functools.partial | types.MethodType):
        return _asks(dataset)
    if any(_asks(member) for base in type(dataset).__mro__ for member in vars(base).values()):
        return True
    if depth == _DEEPEST or not hasattr(dataset, "__dict__"):
        return False
    values = list(vars(dataset).values())
    parts = [part for value in values for part in (value if type(value) in (list, tuple) else [value])[:_LONGEST]]
    return any(asks_for_worker(part, depth + 1) for part in parts if callable(part) or hasattr(part, "__getitem__"))


def _how(dataset: Any, depth: int) -> str:
    kind = type(dataset)
    for base in kind.__mro__:
        if base is IterableDataset:
            break
        if base.__module__.partition(".")[0] in _SHARING:
            return f"{base.__module__.partition('.')[0]} shards samples among workers"
        if any(_asks(member) for member in vars(base).values()):
            return f"{kind.__qualname__} queries the worker's number"
    if depth == _DEEPEST:
        return ""
    parts = list(_parts(dataset))
    asking = [name for name in (_name(part) for part in parts if _asks(part)) if name]
    if asking:  # a stage of webdataset's pipelines
        return f"{asking[0]} queries the worker's number"
    within = [_how(part, depth + 1) for part in parts if isinstance(part, IterableDataset)]
    return within[0] if within and all(within) else ""


def _parts(dataset: Any) -> Iterator[Any]:
    """Yields the values of a dataset's attributes, and the elements of those that are lists."""
    for value in list(vars(dataset).values()) if hasattr(dataset, "__dict__") else []:
        if isinstance(value, (IterableDataset, types.FunctionType)):
            yield value
        elif type(value) in (list, tuple) and len(value) <= 1000:
            yield from value


def _asks(member: Any) -> bool:
    if type(member) in (classmethod, staticmethod, types.MethodType):
        member = member.__func__
    if type(member) is functools.partial:
        member = member.func
    return isinstance(member, types.FunctionType) and _names(member.__code__)


def _names(code: types.CodeType) -> bool:
    within: Iterable[Any] = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return not _QUESTIONS.isdisjoint((*code.co_names, *code.co_varnames)) or any(map(_names, within))


def _name(part: Any) -> str:
    return str(getattr(part.func if type(part) is functools.partial else part, "__name__", ""))
