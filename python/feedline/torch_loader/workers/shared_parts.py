# SPDX-License-Identifier: Apache-2.0
"""Finds the mutable parts of a dataset, to determine whether two datasets share parts and whether a part has
changed.

Immutable objects are ignored: numbers, text, classes, modules, loggers and code.
"""

from __future__ import annotations

import datetime
import enum
import gc
import itertools
import logging
import pathlib
import random
import re
import types
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

_ATOMS = (
    *(type(None), bool, int, float, complex, str, bytes, range, slice, type(...)),
    *(type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.GenericAlias, weakref.ref),
    *(torch.dtype, torch.device, np.dtype, np.generic),
    *(pathlib.PurePath, logging.Logger, enum.Enum, re.Pattern, datetime.date, datetime.timedelta),
)
_EXACT_ATOMS = frozenset((type(None), bool, int, float, complex, str, bytes))
# Every session has its own copy of these, even if they are shared.
_OF_THE_PROCESS = (random._inst, np.random.mtrand._rand, torch.default_generator)  # type: ignore[attr-defined]
_THROUGH = (tuple, frozenset, types.FunctionType, types.MethodType)  # their contents may be mutable, they are not
_MOST = 1_000_000  # objects: larger datasets are not examined


class Parts:
    """The mutable objects that are reachable from `roots`, with their current references.

    The objects are kept alive, so that an address identifies an object.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        """Raises:
        ValueError: there are too many objects.
        """
        self._refers: dict[int, int] = {}
        self._seen: dict[int, Any] = {}
        waiting = list(roots)
        while waiting:
            part = waiting.pop()
            if id(part) in self._seen or _is_atom(part):
                continue
            if len(self._seen) == _MOST:
                raise ValueError(f"more than {_MOST:,} objects")
            within = _within(part)
            self._seen[id(part)] = part
            if not isinstance(part, _THROUGH):
                self._refers[id(part)] = hash((type(part), _hidden(part), *map(id, within)))
            if not _are_plain(within):
                waiting += within

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parts) and self._refers == other._refers

    __hash__ = None  # type: ignore[assignment]

    def shares(self, other: Parts) -> bool:
        return not self._refers.keys().isdisjoint(other._refers)


def _is_atom(part: Any) -> bool:
    if isinstance(part, np.ndarray):
        return not part.flags.writeable and part.dtype != object
    return isinstance(part, _ATOMS) or any(part is one for one in _OF_THE_PROCESS)


def _within(part: Any) -> list[Any]:
    """Returns the objects that `part` references, without the module in which a function was defined."""
    if isinstance(part, types.FunctionType):
        return [part.__closure__, part.__defaults__, part.__kwdefaults__, part.__dict__ or None]
    getattr(part, "__dict__", None)  # this turns attributes that were stored in the object into a dict
    return gc.get_referents(part)


def _hidden(part: Any) -> Any:
    """Returns mutable state that is stored outside of Python objects: the position of a generator, or the version of a
    tensor.
    """
    if isinstance(part, random.Random):
        return part.getstate()
    if isinstance(part, np.random.BitGenerator):
        return repr(part.state)
    if isinstance(part, np.random.RandomState):
        return repr(part.get_state())
    if isinstance(part, torch.Generator):
        return part.get_state().numpy().tobytes()
    return part._version if isinstance(part, torch.Tensor) and not part.is_inference() else None


def _are_plain(parts: list[Any]) -> bool:
    """Returns whether `parts` is a long list of only paths or (path, class) pairs, which can be checked quickly."""
    kinds = set(map(type, parts))
    if kinds == {tuple}:
        kinds = set(map(type, itertools.chain.from_iterable(parts)))
    return kinds <= _EXACT_ATOMS
