# SPDX-License-Identifier: Apache-2.0
"""The kinds of values that sample_code distinguishes in a `__getitem__`: constant, plain, or an image."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .frames import Rows


class Refused(Exception):
    """A part of the code is not recognised.

    Attributes:
        why: the line and the reason.
    """

    def __init__(self, node: ast.AST | None, why: str) -> None:
        line = getattr(node, "lineno", None)
        self.why = f"line {line}: {why}" if line else why
        super().__init__(self.why)


@dataclass(frozen=True)
class Known:
    """A value that is the same for all samples. `slot`: the attribute from which the value was read, and the keys in
    that attribute.
    """

    value: Any
    slot: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Plain:
    """A value of a sample that does not contain an image, as an expression of the generated function.

    `checked`: whether the value's type is known to be plain. `fresh`: whether the sample's code created the value, so
    that the code may modify it.
    `is_index`: whether the value is computed from the sample's index without looking up anything. `row`: the value, if
    it is a row of a frame.
    """

    code: ast.expr
    checked: bool = False
    fresh: bool = False
    is_index: bool = False
    row: Row | None = None


@dataclass(frozen=True)
class Row:
    """A row of a pandas frame, which is created only if its columns cannot be looked up instead."""

    rows: Rows
    index: ast.expr


@dataclass(frozen=True)
class Opened:
    """A file that was opened for reading."""

    path: Plain


@dataclass(frozen=True)
class Step:
    """A transform that is called with only the image. `call`: a number that each call in the source has."""

    transform: Any
    slot: tuple[Any, ...] = ()
    call: int = 0


@dataclass(frozen=True)
class Picture:
    """An image. `mode`: mode to which the image was converted; empty if the image was not converted. `block`: the
    `with` statement that closes the image's file.

    `code`: an expression for the image, which the user's code may convert to an array; None after a transform.
    `refused`: why the engine cannot read the image; empty if it can.
    """

    path: Plain
    code: ast.expr | None
    mode: str = ""
    turned: bool = False  # by its EXIF orientation
    steps: tuple[Step, ...] = ()
    block: int = 0
    refused: str = ""


@dataclass
class Made:
    """A tuple, list or dict of values. `keys`: keys of a dict."""

    kind: type
    items: list[Any]
    keys: list[Any] = field(default_factory=list)


UNDEFINED = object()  # a variable that only some of the samples' paths through the code set
Value = Any  # Known, Plain, Opened, Picture, Made or UNDEFINED


def has_image(value: Value) -> bool:
    if isinstance(value, Made):
        return any(map(has_image, value.items))
    return isinstance(value, (Picture, Opened))
