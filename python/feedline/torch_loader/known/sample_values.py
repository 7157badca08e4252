# SPDX-License-Identifier: Apache-2.0
"""The values that a `__getitem__` handles, as sample_code sees them: known before, plain, or an image."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any


class Refused(Exception):
    """A part of the code is not understood.

    Attributes:
        why: the line and the reason.
    """

    def __init__(self, node: ast.AST | None, why: str) -> None:
        line = getattr(node, "lineno", None)
        self.why = f"line {line}: {why}" if line else why
        super().__init__(self.why)


@dataclass(frozen=True)
class Known:
    """The same value for all samples. `slot` is the attribute, and the keys in it, from which it was read."""

    value: Any
    slot: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Plain:
    """A sample's value without an image, as an expression of the made function.

    `checked`: its type is plain for certain. `fresh`: the sample's code made it, so that the code may fill it.
    `is_index`: it is computed from the sample's index without looking anything up.
    """

    code: ast.expr
    checked: bool = False
    fresh: bool = False
    is_index: bool = False


@dataclass(frozen=True)
class Opened:
    """A file that was opened for reading."""

    path: Plain


@dataclass(frozen=True)
class Step:
    """A transform that is called with only the image."""

    transform: Any
    slot: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Picture:
    """An image. `mode`: to which it was converted; empty: as stored. `block`: the `with` that closes its file."""

    path: Plain
    mode: str = ""
    turned: bool = False  # by its EXIF orientation
    steps: tuple[Step, ...] = ()
    block: int = 0


@dataclass
class Made:
    """A tuple, list or dict of values. `keys` are those of a dict."""

    kind: type
    items: list[Any]
    keys: list[Any] = field(default_factory=list)


UNDEFINED = object()  # a variable that only some of the samples' paths through the code set
Value = Any  # Known, Plain, Opened, Picture, Made or UNDEFINED


def has_image(value: Value) -> bool:
    if isinstance(value, Made):
        return any(map(has_image, value.items))
    return isinstance(value, (Picture, Opened))
