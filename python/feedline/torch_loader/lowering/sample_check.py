# SPDX-License-Identifier: Apache-2.0
"""Compares a few samples of a user's class with the engine's, bit for bit, before the first batch.

The class's own `__getitem__` runs on a copy of the dataset object. In the copy, transforms stop before the first one
that is random, unknown or creates floats, so the images are compared as pixels. Functions of the user's that get other
values, such as a target transform, are replaced by one that returns its arguments.
"""

from __future__ import annotations

import random
import types
from collections.abc import Sequence
from typing import Any

import numpy
import torch

from ..fetching import fetch
from ..known import own_classes, sources, transforms
from ..known.sample_code import SampleCode, sample_code
from ..known.sample_values import Refused
from ..known.stored_mode import is_stored_as_rgb
from ..native.prefix import Reader

_DRAWN = 3  # samples that are compared in addition to the first and the last
_LAST_BITS = 1e-5  # images of floats may differ by the last bit before they are normalized
_SEED = 1  # any number: the same samples are compared in every run


def why_unequal(dataset: Any, leaf: Any, code: SampleCode) -> str:
    """Why the class's samples are not the engine's; empty if the compared ones are equal."""
    try:
        count = len(dataset)
    except TypeError:
        return "its length is not known, so its samples cannot be compared"
    if not count:
        return ""
    copied = _Copy(leaf)
    members = _pixel_members(code)
    missing = copied.cut(code, len(members))
    if missing:
        members = [member for step in code.steps for member in transforms.members_of(step.transform)]
        copied = _Copy(leaf)
    if not copied.replace_functions(code):
        return "a function of the class is not an attribute of the object, so its samples cannot be compared"
    try:
        code = sample_code(copied.dataset)  # with the replaced functions
    except Refused as refused:
        return refused.why
    files = sources.GivenFiles("files")
    start = transforms.Chain(own_classes.decoded(files, code), channels=own_classes.channels(code))
    chain = transforms.chain_of_members(members, start)
    if missing and (chain.rest or chain.random):
        return f"{missing} draws random numbers and cannot be replaced, so samples cannot be compared"
    reader = Reader(files, chain)
    chosen = random.Random(_SEED).sample(range(count), min(count, _DRAWN))
    compared = 0
    for index in sorted({0, count - 1, *chosen}):
        with fetch.untouched_generators():
            why = _compare(copied, code, reader, sources.locate(dataset, index)[1])
        if why:
            return f"sample {index} of its own __getitem__ differs from the engine's: {why}"
        compared += why is not None
    return "" if compared else "the engine cannot read the first, the last and some other samples"


def _compare(copied: _Copy, code: SampleCode, reader: Reader, index: Any) -> str | None:
    """The difference of a sample; empty if it is equal; None if the dataset itself reads it."""
    try:
        path, others = code.row(index)
        if not code.mode and not is_stored_as_rgb(path):
            return None
        ours = reader.read(path)
    except Exception:  # the dataset reads such a sample itself
        return None
    try:
        theirs = copied.read(index)
    except Exception as error:
        return f"it raises {type(error).__name__}: {error}"
    items = theirs if code.kind is not None else (theirs,)
    if code.kind is not None and type(theirs) is not code.kind:
        return f"it is a {type(theirs).__qualname__}"
    if code.kind is dict:
        if tuple(theirs) != code.keys:
            return f"its keys are {list(theirs)}"
        items = tuple(theirs.values())
    expected = (*others[: code.at], ours, *others[code.at :])
    if len(items) != len(expected):
        return f"it has {len(items)} values"
    for position, (mine, other) in enumerate(zip(expected, items, strict=True)):
        if not _equal(mine, other):
            return "its pixels" if position == code.at else f"value {position}: {other!r:.60}, not {mine!r:.60}"
    return ""


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and _same_numbers(one.detach().numpy(), other.detach().numpy())
    if isinstance(one, numpy.ndarray) or type(one).__module__.startswith("PIL."):
        return getattr(one, "mode", None) == getattr(other, "mode", None) and _same_numbers(
            numpy.asarray(one), numpy.asarray(other)
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    try:
        return bool(one == other) or bool(one != one and other != other)
    except Exception:
        return False


def _same_numbers(one: numpy.ndarray, other: numpy.ndarray) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype == numpy.float32 and one.ndim == 3:  # an image whose transforms could not be cut
        return bool(numpy.allclose(one, other, rtol=_LAST_BITS, atol=_LAST_BITS))
    return one.tobytes() == other.tobytes()


def _pixel_members(code: SampleCode) -> list[Any]:
    """The transforms at the start that are known, draw nothing and return pixels."""
    found: list[Any] = []
    start = own_classes.decoded(sources.GivenFiles("files"), code)
    chain = transforms.Chain(start, channels=own_classes.channels(code))
    for step in code.steps:
        for member in transforms.members_of(step.transform):
            longer = transforms.chain_of_members([member], chain)
            if longer.rest or longer.random or longer.crops or longer.flows not in (transforms.PIL, transforms.BYTES):
                return found
            found, chain = [*found, member], longer
    return found


class _Copy:
    """A copy of a dataset object whose transforms and functions are replaced by others."""

    def __init__(self, leaf: Any) -> None:
        self.dataset = object.__new__(type(leaf))
        self.dataset.__dict__.update(vars(leaf))
        self._names: dict[str, Any] = {}  # global names and variables of an enclosing function

    def cut(self, code: SampleCode, count: int) -> str:
        """Ends the transforms after `count` members. Returns the name of one that cannot be replaced, or empty."""
        left = count
        for step in code.steps:
            own = transforms.members_of(step.transform)
            if len(own) > left and not self._put(step.slot, _Only(own[:left])):
                return transforms.name_of(step.transform)
            left = max(0, left - len(own))
        return ""

    def replace_functions(self, code: SampleCode) -> bool:
        return all(self._put(slot, _Arguments()) for slot in code.called)

    def read(self, index: Any) -> Any:
        """The sample as the class's `__getitem__` returns it."""
        method = type(self.dataset).__getitem__
        if not self._names:
            return method(self.dataset, index)
        names, cells = {**method.__globals__, **self._names}, method.__closure__
        if cells is not None:
            free = zip(method.__code__.co_freevars, cells, strict=True)
            cells = tuple(types.CellType(self._names[name]) if name in self._names else cell for name, cell in free)
        copied = types.FunctionType(method.__code__, names, method.__name__, method.__defaults__, cells)
        copied.__kwdefaults__ = method.__kwdefaults__
        return copied(self.dataset, index)

    def _put(self, slot: tuple[Any, ...], replacement: Any) -> bool:
        if len(slot) < 2:
            return False
        where, name, keys = slot[0], slot[1], slot[2:]
        method = type(self.dataset).__getitem__
        if where == "self":
            names = self.dataset.__dict__
            old = names.get(name)
        else:
            names = self._names
            free = dict(zip(method.__code__.co_freevars, method.__closure__ or (), strict=True))
            old = free[name].cell_contents if name in free else method.__globals__.get(name)
        old = names.get(name, old)
        if old is None:
            return False
        names[name] = _with_item(old, keys, replacement)
        return True


def _with_item(container: Any, keys: tuple[Any, ...], value: Any) -> Any:
    if not keys:
        return value
    changed = dict(container) if isinstance(container, dict) else list(container)
    changed[keys[0]] = _with_item(changed[keys[0]], keys[1:], value)
    return changed


class _Only:
    """Some transforms of a list."""

    def __init__(self, members: Sequence[Any]) -> None:
        self._members = members

    def __call__(self, image: Any) -> Any:
        for member in self._members:
            image = member(image)
        return image


class _Arguments:
    """Returns its arguments."""

    def __call__(self, *args: Any) -> Any:
        return args
