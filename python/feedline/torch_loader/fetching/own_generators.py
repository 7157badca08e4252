# SPDX-License-Identifier: Apache-2.0
"""Finds the random generators of a dataset's transforms, and determines which of them `seed=` can seed.

Libraries with their own generators document a method that seeds them: Albumentations
(`set_random_state(random_generator, py_random)`), MONAI (`set_random_state(seed)`), imgaug (`seed_(seed)`), and others
with a `set_random_seed(seed)`. Transforms of torchvision, Kornia, TorchIO and timm draw from the global generators of
torch, NumPy and Python.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import logging
import random
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

_log = logging.getLogger("feedline")
_MOST_OBJECTS = 2_000  # examined per dataset: transforms are few, but lists of samples may be long
_MOST_ELEMENTS = 64  # per list or dictionary
_DEEPEST = 8
_STEP = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: its multiples are spread evenly
_READS = ("__getitem__", "__getitems__", "__iter__", "__next__", "__call__")  # methods that may use globals
# Objects that hold no transform and may be large or lazy.
_SKIPPED = ("numpy", "torch._C", "torch.storage", "pyarrow", "PIL", "pandas", "builtins", "threading", "_io", "logging")
_RAW = (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)

Seed = Callable[[int], None]


@dataclass(frozen=True)
class OwnGenerators:
    """The generators found in a dataset: the functions that seed them, and the names of generators that can and cannot
    be seeded.
    """

    seeds: tuple[Seed, ...]
    reached: tuple[str, ...]
    unreached: tuple[str, ...]

    def put(self, seed: int) -> None:
        for at, one in enumerate(self.seeds):
            one((seed + at * _STEP) % (1 << 63))  # so that two transforms draw different numbers


NONE = OwnGenerators((), (), ())


def lines_of(found: OwnGenerators, seed: int) -> list[str]:
    """Lines of `explain()`."""
    lines = [f"  random     numbers are seeded for each sample from seed {seed}, the epoch and the index"]
    if found.reached:
        lines.append(f"  random     seed also seeds the generators of {', '.join(found.reached)}")
    if found.unreached:
        lines.append(f"  random     seed does not seed the generators of {', '.join(found.unreached)}")
    return lines


def warn_of(found: OwnGenerators) -> None:
    if found.unreached:
        _log.warning(
            "seed= does not seed the random generators of %s. Samples that draw from them depend on the workers. "
            "Draw from torch's, NumPy's or Python's global generators, which are seeded for each sample, or give the "
            "class a method set_random_seed(seed)",
            ", ".join(found.unreached),
        )


def own_generators(*roots: Any) -> OwnGenerators:
    """Searches datasets and functions for generators, including attributes, elements, closures, and globals that
    methods use.
    """
    seeds: list[Seed] = []
    reached: list[str] = []
    unreached: list[str] = []
    seen: set[int] = set()
    waiting = [(_name_of(root), root, 0) for root in reversed(roots)]
    while waiting and len(seen) < _MOST_OBJECTS:
        path, thing, depth = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        seed = _seed_of(thing)
        if seed is not None:
            seeds.append(seed)
            reached.append(f"{path} ({_kind_of(thing)})")
        elif isinstance(thing, _RAW):
            unreached.append(f"{path} ({_kind_of(thing)})")
        elif depth < _DEEPEST:
            inner = [(f"{path}{name}", value, depth + 1) for name, value in _parts_of(thing)]
            waiting += reversed(inner)
    return OwnGenerators(tuple(seeds), tuple(reached), tuple(unreached))


def _name_of(root: Any) -> str:
    return getattr(root, "__name__", None) or type(root).__name__


def _kind_of(thing: Any) -> str:
    return f"{type(thing).__module__.partition('.')[0]}.{type(thing).__name__}"


def _seed_of(thing: Any) -> Seed | None:
    if isinstance(thing, (type, types.ModuleType)):
        return None
    set_state = getattr(type(thing), "set_random_state", None)
    takes = _parameters_of(set_state)
    if {"random_generator", "py_random"} <= takes:
        return lambda seed: thing.set_random_state(np.random.default_rng(seed), random.Random(seed))
    if "seed" in takes:
        return lambda seed: thing.set_random_state(seed=seed % (1 << 32))  # the range of np.random.RandomState
    if callable(getattr(type(thing), "set_random_seed", None)):
        return lambda seed: thing.set_random_seed(seed % (1 << 32))
    if type(thing).__module__.partition(".")[0] == "imgaug" and callable(getattr(type(thing), "seed_", None)):
        return lambda seed: thing.seed_(seed % (1 << 31))
    return None


def _parameters_of(method: Any) -> set[str]:
    if not callable(method):
        return set()
    try:
        return set(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return set()


def _parts_of(thing: Any) -> Iterable[tuple[str, Any]]:
    """Returns the parts of `thing` that may be or contain a transform, each with a suffix for its name."""
    if isinstance(thing, (list, tuple)):
        return ((f"[{at}]", value) for at, value in enumerate(thing[:_MOST_ELEMENTS]) if _may_hold(value))
    if isinstance(thing, dict):
        first = itertools.islice(thing.items(), _MOST_ELEMENTS)
        return ((f"[{key!r:.40}]", value) for key, value in first if _may_hold(value))
    if isinstance(thing, functools.partial):
        return ((".func", thing.func), (".args", thing.args), (".keywords", thing.keywords))
    if isinstance(thing, types.MethodType):
        return ((".__self__", thing.__self__), (".__func__", thing.__func__))
    if isinstance(thing, types.FunctionType):
        return _used_by(thing)
    return _attributes_of(thing)


def _attributes_of(thing: Any) -> Iterator[tuple[str, Any]]:
    for name, value in getattr(thing, "__dict__", {}).items():
        if _may_hold(value):
            yield f".{name}", value
    for base in type(thing).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            value = getattr(thing, name, None)
            if _may_hold(value):
                yield f".{name}", value
    for method in _READS:
        function = getattr(type(thing), method, None)
        if isinstance(function, types.FunctionType):
            yield from _used_by(function)


def _used_by(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if _may_hold(value):
            yield f" uses {name}", value
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if value is not None and _may_hold(value) and not isinstance(value, type):
            yield f" uses {name}", value


def _may_hold(value: Any) -> bool:
    if isinstance(value, _RAW):
        return True
    if isinstance(value, (types.ModuleType, type, torch.Tensor)) or value is None:
        return False
    if isinstance(value, (list, tuple, dict, types.FunctionType, types.MethodType, functools.partial)):
        return True
    module = type(value).__module__
    return not any(module == skipped or module.startswith(skipped + ".") for skipped in _SKIPPED)
