# SPDX-License-Identifier: Apache-2.0
"""Analyses a user's `__getitem__` that opens images, transforms each of them and looks up the other values.

`sample_code()` must recognise every statement of the method and of the functions that it calls with the image;
otherwise the whole method is refused, and the reason names the line. The result is a function that consists of the
user's own expressions for paths and labels, without the images.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import plain_values
from .sample_statements import UNUSUAL, Statements, source_tree
from .sample_values import Known, Made, Picture, Plain, Refused, Step, has_image

Row = tuple[tuple[Any, ...], tuple[Any, ...]]


@dataclass(frozen=True)
class ImageCode:
    """One image of a sample.

    Attributes:
        at: position of the image among a sample's items.
        mode: mode to which the image is converted; empty if the image is not converted.
        turned: whether the image is rotated according to its EXIF orientation.
        steps: the transforms, in order.
    """

    at: int
    mode: str
    turned: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class SampleCode:
    """The code of a `__getitem__` without its images.

    Attributes:
        row: a function that returns (paths of the images, other values) for an index, or raises an error if only the
            dataset itself can read the sample.
        kind: type of a sample: tuple, list or dict; None if a sample is only the image.
        keys: keys of a sample that is a dict.
        images: the images, in the order of a sample's items; at least one.
        count: number of a sample's items.
        called: attributes that hold the user's functions that `row` calls, such as a target transform.
        opens: whether `row` itself opens images, which the class converts to arrays.
    """

    row: Callable[[Any], Row]
    kind: type | None
    keys: tuple[Any, ...]
    images: tuple[ImageCode, ...]
    count: int
    called: tuple[tuple[Any, ...], ...]
    opens: bool = False

    @property
    def is_slow(self) -> bool:
        """Whether `row` runs code that should run in workers, not in the process of the loop."""
        return bool(self.called) or self.opens

    @property
    def is_pair(self) -> bool:
        """Whether a sample is a tuple of the image and one other value, in this order."""
        return self.form == (tuple, (), (0,), 2)

    @property
    def form(self) -> tuple[Any, ...]:
        """The container of a sample, its keys, the positions of its images, and the number of its items."""
        return self.kind, self.keys, tuple(image.at for image in self.images), self.count

    def sample(self, images: Sequence[Any], others: Sequence[Any]) -> Any:
        """Returns a sample of the dataset, or a batch made from columns."""
        if self.kind is None:
            return images[0]
        items = list(others)
        for code, image in zip(self.images, images, strict=True):
            items.insert(code.at, image)
        return dict(zip(self.keys, items, strict=True)) if self.kind is dict else self.kind(items)


def sample_code(dataset: Any) -> SampleCode:
    """Raises Refused if a part of the dataset's class is not recognised."""
    kind = type(dataset)
    for name in ("__getattr__", "__getattribute__", "__getitems__"):
        if getattr(kind, name, None) not in (None, object.__getattribute__) or name in getattr(dataset, "__dict__", ()):
            raise Refused(None, f"the class or the object has {name}")
    method = getattr(kind, "__getitem__", None)
    if not isinstance(method, types.FunctionType):
        raise Refused(None, "__getitem__ is not a Python function")
    if not hasattr(dataset, "__dict__"):
        raise Refused(None, "the class has __slots__")
    return _made(dataset, method)


def _made(dataset: Any, method: types.FunctionType) -> SampleCode:
    body = Statements(dataset)
    index = ast.Name("_index", ast.Load())
    first = Plain(ast.Call(ast.Name("_feedline_checked", ast.Load()), [index], []))
    named = Plain(body.stored(first).code, checked=True, is_index=True)
    value = body.call_function(source_tree(method), method, [Known(dataset), named], {})
    made = value if isinstance(value, Made) else Made(type(None), [value])
    at = [i for i, item in enumerate(made.items) if isinstance(item, Picture)]
    others = [item for item in made.items if not isinstance(item, Picture)]
    if body.writer.arrays and not has_image(value):
        node, name = body.writer.arrays[0]
        raise Refused(node, f"{name}() uses the image outside of its transforms")
    if body.writer.arrays and body.writer.called:  # which may remember what the image's transform drew
        node, name = body.writer.arrays[0]
        raise Refused(node, f"{name}() of an image is not supported if the class also calls a function of the user")
    if not at or any(map(has_image, others)):
        raise Refused(None, f"a sample has {'images in an inner container' if has_image(value) else 'no image'}")
    pictures: list[Picture] = [made.items[i] for i in at]
    for picture in pictures:
        if picture.refused:
            raise Refused(None, picture.refused)
    paths = ast.Tuple([picture.path.code for picture in pictures], ast.Load())
    codes = ast.Tuple([body.part(source_tree(method), item) for item in others], ast.Load())
    returned = ast.Return(ast.Tuple([paths, codes], ast.Load()))
    row = _function(body.writer.constants, [*body.writer.statements, returned])
    images = tuple(ImageCode(i, p.mode, p.turned, p.steps) for i, p in zip(at, pictures, strict=True))
    kind = None if made.kind is type(None) else made.kind
    called, opens = tuple(body.writer.called), bool(body.writer.arrays)
    return SampleCode(row, kind, tuple(made.keys), images, len(made.items), called, opens)


def _function(constants: dict[str, Any], body: list[ast.stmt]) -> Callable[[Any], Row]:
    parameters = ast.arguments([], [ast.arg("_index")], None, [], [], None, [])
    definition = ast.parse("def _row(): pass")
    function = definition.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.args, function.body = parameters, body
    names: dict[str, Any] = {**constants, UNUSUAL: plain_values.NotPlain}
    exec(compile(ast.fix_missing_locations(definition), "<sample>", "exec"), names)
    row: Callable[[Any], Row] = names["_row"]
    return row
