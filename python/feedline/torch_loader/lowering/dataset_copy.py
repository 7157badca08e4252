# SPDX-License-Identifier: Apache-2.0
"""A copy of a user's dataset object whose transforms and functions are replaced, so that samples can be compared."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from .own_code.sample_code import SampleCode
from .own_code.sample_values import Step
from .transforms import transforms


def key_of(step: Step) -> Any:
    """Returns the identifier of the object that is replaced to remove a step."""
    return step.slot or step.call


class DatasetCopy:
    """A copy of a dataset object whose transforms and functions are replaced."""

    def __init__(self, leaf: Any) -> None:
        self.dataset = object.__new__(type(leaf))
        self.dataset.__dict__.update(vars(leaf))
        self._names: dict[str, Any] = {}  # global names and variables of an enclosing function

    def cut(self, code: SampleCode, counts: dict[Any, int]) -> str:
        """Truncates the transforms of each step after the given number of members. Returns the name of a transform or
        function that cannot be replaced; empty if all are replaced.
        """
        for step in {key_of(step): step for image in code.images for step in image.steps}.values():
            own, count = transforms.members_of(step.transform), counts[key_of(step)]
            if count < len(own) and not self._put(step.slot, _Only(own[:count])):
                return transforms.name_of(step.transform)
        return ""

    def replace_functions(self, code: SampleCode) -> bool:
        return all(self._put(slot, _Arguments()) for slot in code.called)

    def read(self, index: Any) -> Any:
        """Returns the sample that the class's own `__getitem__` returns."""
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
    """Some of the transforms of a list."""

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
