# SPDX-License-Identifier: Apache-2.0
"""Analyses the expressions of a `__getitem__` without running it, and converts them to constants or to code for plain
values.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from . import plain_values
from .frames import Column, Rows
from .sample_values import UNDEFINED, Known, Made, Plain, Refused, Value, has_image

_CHECKED, _IMMUTABLE = "_feedline_checked", "_feedline_immutable"


@dataclass
class Scope:
    """The variables of a function."""

    function: types.FunctionType
    names: dict[str, Value]
    inner: bool = False  # a function that __getitem__ calls


@dataclass
class Writer:
    """The statements and constants of the function being generated."""

    statements: list[ast.stmt] = field(default_factory=list)
    constants: dict[str, Any] = field(
        default_factory=lambda: {_CHECKED: plain_values.checked, _IMMUTABLE: plain_values.immutable}
    )
    count: int = 0
    called: list[tuple[Any, ...]] = field(default_factory=list)  # slots of the user's functions
    arrays: list[tuple[ast.AST, str]] = field(default_factory=list)  # calls that make an image an array, by name

    def name(self) -> str:
        self.count += 1
        return f"_v{self.count}"

    def constant(self, value: Any) -> ast.expr:
        if value is None or type(value) in (str, int, float, bool, bytes):
            return ast.Constant(value)
        name = f"_k{len(self.constants)}"
        self.constants[name] = value
        return load(name)


class Expressions:
    """Analyses expressions in a scope. sample_calls handles calls, and sample_code handles statements."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.writer = Writer()
        self.scopes: list[Scope] = []
        self.loops: list[frozenset[str]] = []  # the variables that were set before each loop
        self.transformed = 0  # calls to transforms so far

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    def value(self, node: ast.expr | None) -> Value:
        method: Callable[[Any], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise Refused(node, f"{type(node).__name__.lower()} expressions are not supported")
        return method(node)

    def plain(self, node: ast.expr, why: str = "the image is used outside of its transforms") -> Plain:
        return self.as_plain(node, self.value(node), why)

    def as_plain(self, node: ast.AST, value: Value, why: str = "the image is used outside of its transforms") -> Plain:
        """Returns `value` as code whose result has a plain type. Raises Refused if `value` contains an image."""
        if isinstance(value, Known):
            if not plain_values.is_plain(value.value) and not plain_values.is_pure(value.value):
                raise Refused(node, f"{name_of(value.value)} is not a plain value")
            return Plain(self.writer.constant(value.value), checked=True)
        if isinstance(value, Made) and not has_image(value):
            return self._plain_of_made(node, value)
        if not isinstance(value, Plain):
            raise Refused(node, why)
        return value if value.checked else replace(value, code=_call(_CHECKED, value.code), checked=True)

    def part(self, node: ast.AST, value: Value) -> ast.expr:
        """Returns the code for a value of any type that the function returns."""
        if isinstance(value, Known) and value.value is not self.dataset:
            return self.writer.constant(value.value)
        if isinstance(value, Plain):
            return value.code
        return self.as_plain(node, value).code

    def _plain_of_made(self, node: ast.AST, value: Made) -> Plain:
        codes = [self.part(node, item) for item in value.items]
        if value.kind is dict:
            return Plain(ast.Dict([ast.Constant(key) for key in value.keys], codes), checked=True)
        kind = ast.Tuple if value.kind is tuple else ast.List
        return Plain(kind(codes, ast.Load()), checked=True)

    # -- names and constants

    def _constant(self, node: ast.Constant) -> Value:
        return Known(node.value)

    def _name(self, node: ast.Name) -> Value:
        scope = self.scope
        if node.id in scope.names:
            found = scope.names[node.id]
            if found is UNDEFINED:
                raise Refused(node, f"{node.id!r} is not set, or its file is closed, for some samples")
            return found
        return Known(self._global(node, scope), () if scope.inner else ("global", node.id))

    def _global(self, node: ast.Name, scope: Scope) -> Any:
        free = scope.function.__code__.co_freevars
        if node.id in free:
            assert scope.function.__closure__ is not None
            try:
                return scope.function.__closure__[free.index(node.id)].cell_contents
            except ValueError:
                raise Refused(node, f"{node.id!r} is not set") from None
        names = scope.function.__globals__
        if node.id in names:
            return names[node.id]
        found = plain_values.builtin(node.id)
        if found is None and node.id != "None":
            raise Refused(node, f"{node.id!r} is not defined")
        return found

    def _attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        if isinstance(base, Known):
            return self.known_attribute(node, base)
        if isinstance(base, Plain) and base.row is not None:
            column = base.row.rows.attribute(node.attr)
            if column is not None:
                return self.column_value(column, base.row.index)
        return Plain(ast.Attribute(self.as_plain(node, base).code, node.attr, ast.Load()))

    def column_value(self, column: Column, index: ast.expr) -> Plain:
        return Plain(ast.Call(self.writer.constant(column), [index], []))

    def row_code(self, rows: Rows, index: ast.expr) -> ast.expr:
        return ast.Subscript(self.writer.constant(rows.indexer), index, ast.Load())

    def known_attribute(self, node: ast.Attribute, base: Known) -> Value:
        if base.value is self.dataset:
            return Known(self.own_attribute(node), ("self", node.attr))
        plain = plain_values.is_plain(base.value)
        if not plain and not isinstance(base.value, (types.ModuleType, type)):
            raise Refused(node, f"{name_of(base.value)}.{node.attr} may be any code")
        try:
            return Known(getattr(base.value, node.attr))
        except Exception as error:
            raise Refused(node, f"{type(error).__name__}: {error}") from None

    def own_attribute(self, node: ast.Attribute) -> Any:
        """Returns an attribute of the dataset; methods are returned unbound."""
        kind, name = type(self.dataset), node.attr
        name = _mangled(name, self.scope.function)
        own = vars(self.dataset)
        inherited = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), UNDEFINED)
        if isinstance(inherited, property) or (inherited is not UNDEFINED and hasattr(type(inherited), "__set__")):
            raise Refused(node, f"self.{node.attr} is computed by a property")
        if name in own:
            return own[name]
        if inherited is UNDEFINED:
            raise Refused(node, f"self.{node.attr} is not set")
        return inherited.__func__ if isinstance(inherited, staticmethod) else inherited


def set_item(made: Made, key: Any, value: Value) -> None:
    """Sets an item of a dict that the code builds."""
    if key in made.keys:
        made.items[made.keys.index(key)] = value
    else:
        made.keys.append(key)
        made.items.append(value)


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, argument: ast.expr) -> ast.expr:
    return ast.Call(load(name), [argument], [])


def _mangled(name: str, function: types.FunctionType) -> str:
    """Returns the mangled attribute name for a name with two leading underscores in the class of `function`."""
    parts = function.__qualname__.split(".")
    if not name.startswith("__") or name.endswith("__") or len(parts) < 2:
        return name
    return f"_{parts[-2].lstrip('_')}{name}"


def name_of(value: Any) -> str:
    return str(getattr(value, "__qualname__", None) or type(value).__qualname__)
