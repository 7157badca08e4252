# SPDX-License-Identifier: Apache-2.0
"""Understands a user's `__getitem__` that opens an image, transforms it and looks the other values up.

`sample_code()` accounts for every statement of the method, and of the functions that it calls with the image: each is
one whose effect is known, or the whole method is refused with its line. The result is a function made of the user's own
expressions for paths and labels, without the image.
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


@dataclass(frozen=True)
class SampleCode:
    """A `__getitem__` without its image.

    Attributes:
        row: (path, other values) of an index. It raises any error if only the dataset itself can read the sample.
        kind: of a sample: tuple, list, dict; None if it is the image only.
        keys: of a dict.
        at: the position of the image among a sample's items.
        count: the number of a sample's items.
        mode: to which the image is converted; empty: it is as stored.
        turned: the image is rotated by its EXIF orientation.
        steps: the transforms, in order.
        called: the attributes of the user's functions that `row` calls, such as a target transform.
    """

    row: Callable[[Any], tuple[Any, tuple[Any, ...]]]
    kind: type | None
    keys: tuple[Any, ...]
    at: int
    count: int
    mode: str
    turned: bool
    steps: tuple[Step, ...]
    called: tuple[tuple[Any, ...], ...]

    @property
    def is_pair(self) -> bool:
        """Whether a sample is a tuple of the image and one other value, in this order."""
        return self.kind is tuple and self.at == 0 and self.count == 2

    def sample(self, image: Any, others: Sequence[Any]) -> Any:
        """A sample of the dataset, or a batch of its columns."""
        if self.kind is None:
            return image
        items = [*others[: self.at], image, *others[self.at :]]
        return dict(zip(self.keys, items, strict=True)) if self.kind is dict else self.kind(items)


def sample_code(dataset: Any) -> SampleCode:
    """Raises Refused if a part of the class of `dataset` is not understood."""
    kind = type(dataset)
    for name in ("__getattr__", "__getattribute__", "__getitems__"):
        if getattr(kind, name, None) not in (None, object.__getattribute__):
            raise Refused(None, f"the class has {name}")
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
    if len(at) != 1 or any(map(has_image, others)):
        raise Refused(None, f"a sample has {'several images' if has_image(value) else 'no image'}")
    image: Picture = made.items[at[0]]
    codes = [body.part(source_tree(method), item) for item in others]
    path = ast.Tuple([image.path.code, ast.Tuple(codes, ast.Load())], ast.Load())
    kind = None if made.kind is type(None) else made.kind
    called = tuple(body.writer.called)
    row = _function(body.writer.constants, [*body.writer.statements, ast.Return(path)])
    return SampleCode(
        row, kind, tuple(made.keys), at[0], len(made.items), image.mode, image.turned, image.steps, called
    )


def _function(constants: dict[str, Any], body: list[ast.stmt]) -> Callable[[Any], tuple[Any, tuple[Any, ...]]]:
    parameters = ast.arguments([], [ast.arg("_index")], None, [], [], None, [])
    definition = ast.parse("def _row(): pass")
    function = definition.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.args, function.body = parameters, body
    names: dict[str, Any] = {**constants, UNUSUAL: plain_values.NotPlain}
    exec(compile(ast.fix_missing_locations(definition), "<sample>", "exec"), names)
    row: Callable[[Any], tuple[Any, tuple[Any, ...]]] = names["_row"]
    return row
