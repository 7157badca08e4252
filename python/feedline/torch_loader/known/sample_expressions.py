# SPDX-License-Identifier: Apache-2.0
"""Evaluates the expressions of a `__getitem__` without running it: to constants, or to code of plain values."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from . import plain_values
from .sample_values import UNDEFINED, Known, Made, Picture, Plain, Refused, Value, has_image

_CHECKED, _IMMUTABLE = "_feedline_checked", "_feedline_immutable"


@dataclass
class Scope:
    """The variables of a function."""

    function: types.FunctionType
    names: dict[str, Value]
    inner: bool = False  # a function that __getitem__ calls


@dataclass
class Writer:
    """The function that is being made: its statements and constants."""

    statements: list[ast.stmt] = field(default_factory=list)
    constants: dict[str, Any] = field(
        default_factory=lambda: {_CHECKED: plain_values.checked, _IMMUTABLE: plain_values.immutable}
    )
    count: int = 0
    called: list[tuple[Any, ...]] = field(default_factory=list)  # slots of the user's functions

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
    """Evaluates expressions in a scope. Calls are sample_calls', statements are sample_code's."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.writer = Writer()
        self.scopes: list[Scope] = []
        self.loops: list[frozenset[str]] = []  # the variables that were set before each loop

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    def value(self, node: ast.expr | None) -> Value:
        method: Callable[[Any], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise Refused(node, f"{type(node).__name__.lower()} expressions are not known")
        return method(node)

    def plain(self, node: ast.expr, why: str = "the image is used outside of its transforms") -> Plain:
        return self.as_plain(node, self.value(node), why)

    def as_plain(self, node: ast.AST, value: Value, why: str = "the image is used outside of its transforms") -> Plain:
        """`value` as code whose type is plain; Refused if it has an image."""
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
        """Code of a value that is returned, of any type."""
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
            raise Refused(node, f"{node.id!r} is not known")
        return found

    def _attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        if isinstance(base, Known):
            return self.known_attribute(node, base)
        return Plain(ast.Attribute(self.as_plain(node, base).code, node.attr, ast.Load()))

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
        """An attribute of the dataset; its methods unbound."""
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

    # -- operators

    def _subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if isinstance(base, Made):
            key = self.value(node.slice)
            return self._item(node, base, key)
        key = self.value(node.slice)
        if isinstance(key, Made) and all(isinstance(item, Known) for item in key.items) and key.kind is not dict:
            key = Known(key.kind(item.value for item in key.items))
        if isinstance(base, Known) and isinstance(key, Known):
            if not plain_values.is_plain(base.value) or not plain_values.is_plain(key.value):
                raise Refused(node, f"{name_of(base.value)}[...] may be any code")
            try:
                return Known(base.value[key.value], (*base.slot, key.value) if base.slot else ())
            except Exception as error:
                raise Refused(node, f"{type(error).__name__}: {error}") from None
        if isinstance(base, Known) and not plain_values.is_plain(base.value):
            raise Refused(node, f"{name_of(base.value)}[...] may be any code")
        code = ast.Subscript(self.as_plain(node, base).code, self.as_plain(node, key).code, ast.Load())
        return Plain(code)

    def _item(self, node: ast.AST, base: Made, key: Value) -> Value:
        if isinstance(key, Known):
            if base.kind is dict and key.value in base.keys:
                return base.items[base.keys.index(key.value)]
            if base.kind is not dict and type(key.value) is int and -len(base.items) <= key.value < len(base.items):
                return base.items[key.value]
        if not has_image(base):
            return Plain(ast.Subscript(self.as_plain(node, base).code, self.as_plain(node, key).code, ast.Load()))
        raise Refused(node, "this item is not known")

    def _slice(self, node: ast.Slice) -> Value:
        parts = [None if part is None else self.plain(part).code for part in (node.lower, node.upper, node.step)]
        return Plain(ast.Slice(*parts), checked=True)

    def _binop(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        one, other = self.as_plain(node, left), self.as_plain(node, right)
        code = ast.BinOp(one.code, node.op, other.code)
        return self._folded(node, code, (left, right), one.is_index or other.is_index)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not) and isinstance(value, Known):
            return Known(not self.truth(node, value))
        plain = self.as_plain(node, value)
        return self._folded(node, ast.UnaryOp(node.op, plain.code), (value,), plain.is_index)

    def _compare(self, node: ast.Compare) -> Value:
        values = [self.value(operand) for operand in (node.left, *node.comparators)]
        if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops) and len(values) == 2:
            one, other = values
            if isinstance(one, Known) and isinstance(other, Known):
                return Known((one.value is other.value) == isinstance(node.ops[0], ast.Is))
            if isinstance(one, Picture) and isinstance(other, Known) and other.value is None:
                return Known(isinstance(node.ops[0], ast.IsNot))
        if all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops) and len(values) == 2:
            one, other = values
            both_known = isinstance(one, Known) and isinstance(other, Known)
            if both_known and other.value is None and _has_no_equality(one.value):
                return Known((one.value is None) == isinstance(node.ops[0], ast.Eq))
        plains = [self.as_plain(node, value) for value in values]
        code = ast.Compare(plains[0].code, node.ops, [plain.code for plain in plains[1:]])
        return self._folded(node, code, values, any(plain.is_index for plain in plains))

    def _boolop(self, node: ast.BoolOp) -> Value:
        wants = isinstance(node.op, ast.And)
        values: list[Value] = []
        for operand in node.values:
            value = self.value(operand)
            if isinstance(value, Known):
                if self.truth(operand, value) != wants and not values:
                    return value  # the others are not evaluated
                if self.truth(operand, value) == wants and operand is not node.values[-1]:
                    continue
            values.append(value)
        if len(values) == 1:
            return values[0]
        plains = [self.as_plain(node, value) for value in values]
        return Plain(
            ast.BoolOp(node.op, [plain.code for plain in plains]), True, False, any(p.is_index for p in plains)
        )

    def _ifexp(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        if isinstance(test, Known):
            return self.value(node.body if self.truth(node, test) else node.orelse)
        plain = self.as_plain(node, test)
        self.check_condition(node, plain)
        body, other = self.value(node.body), self.value(node.orelse)
        if has_image(body) or has_image(other):
            raise Refused(node, "some samples are handled differently")
        return Plain(ast.IfExp(plain.code, self.part(node, body), self.part(node, other)))

    def check_condition(self, node: ast.AST, condition: Plain) -> None:
        if condition.is_index:
            raise Refused(node, "some samples are handled differently, by their index")

    def _folded(self, node: ast.AST, code: ast.expr, values: Any, is_index: bool) -> Value:
        """The value of `code` now, if it depends on constants only."""
        if all(isinstance(value, Known) for value in values):
            found = self.run(node, code)
            if plain_values.is_simple(found):
                return Known(found)
        return Plain(code, checked=True, is_index=is_index)

    def run(self, node: ast.AST, code: ast.expr) -> Any:
        expression = ast.fix_missing_locations(ast.Expression(code))
        try:
            return eval(compile(expression, "<constants>", "eval"), {**self.writer.constants})
        except Exception as error:
            raise Refused(node, f"{type(error).__name__}: {error}") from None

    def truth(self, node: ast.AST, value: Known) -> bool:
        """Whether a constant is true, if that calls no user code."""
        kind = type(value.value)
        package = kind.__module__.partition(".")[0]
        own = any(hasattr(kind, name) for name in ("__bool__", "__len__"))
        if own and not plain_values.is_plain(value.value) and package not in ("torch", "torchvision"):
            raise Refused(node, f"the truth of {kind.__qualname__} is its own code")
        try:
            return bool(value.value)
        except Exception as error:
            raise Refused(node, f"{type(error).__name__}: {error}") from None

    # -- text and containers

    def _joinedstr(self, node: ast.JoinedStr) -> Value:
        parts: list[ast.expr] = []
        values: list[Value] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.value(part.value)
                values.append(value)
                spec = None
                if part.format_spec is not None:
                    inner = self._joinedstr(part.format_spec)  # type: ignore[arg-type]
                    values.append(inner)
                    spec = ast.JoinedStr([ast.FormattedValue(self.as_plain(node, inner).code, -1, None)])
                parts.append(ast.FormattedValue(self.as_plain(node, value).code, part.conversion, spec))
            else:
                parts.append(part)
        return self._folded(node, ast.JoinedStr(parts), values, False)

    def _tuple(self, node: ast.Tuple) -> Value:
        return Made(tuple, [self.value(item) for item in node.elts])

    def _list(self, node: ast.List) -> Value:
        return Made(list, [self.value(item) for item in node.elts])

    def _dict(self, node: ast.Dict) -> Value:
        made = Made(dict, [])
        for key_node, item in zip(node.keys, node.values, strict=True):
            value = self.value(item)
            if key_node is None:
                if not isinstance(value, Made) or value.kind is not dict:
                    raise Refused(node, "the keys of ** are not known")
                for key, inner in zip(value.keys, value.items, strict=True):
                    set_item(made, key, inner)
                continue
            key = self.value(key_node)
            if not isinstance(key, Known) or not isinstance(key.value, (str, int)):
                raise Refused(node, "a key depends on the sample")
            set_item(made, key.value, value)
        return made

    def _listcomp(self, node: ast.ListComp) -> Value:
        return self._comprehension(node, ast.ListComp)

    def _generatorexp(self, node: ast.GeneratorExp) -> Value:
        return self._comprehension(node, ast.GeneratorExp)

    def _comprehension(self, node: Any, kind: Any) -> Value:
        outer = dict(self.scope.names)
        generators = []
        try:
            for part in node.generators:
                rows = self.plain(part.iter).code
                target = self.loop_target(part.target)
                tests = [self.plain(test).code for test in part.ifs]
                generators.append(ast.comprehension(target, rows, tests, 0))
            element = self.plain(node.elt).code
        finally:
            self.scope.names = outer
        return Plain(kind(element, generators), checked=True)

    def loop_target(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self.loop_target(item) for item in node.elts], ast.Store())
        if not isinstance(node, ast.Name):
            raise Refused(node, "this loop variable is not known")
        name = self.writer.name()
        self.scope.names[node.id] = Plain(load(name))
        return ast.Name(name, ast.Store())


def _has_no_equality(value: Any) -> bool:
    """Whether `value` is equal only to itself."""
    compare: Any = object.__eq__
    return getattr(type(value), "__eq__", None) is compare


def set_item(made: Made, key: Any, value: Value) -> None:
    """Sets an item of a dict that is being built."""
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
    """The attribute for a name with two leading underscores in the class of `function`."""
    parts = function.__qualname__.split(".")
    if not name.startswith("__") or name.endswith("__") or len(parts) < 2:
        return name
    return f"_{parts[-2].lstrip('_')}{name}"


def name_of(value: Any) -> str:
    return str(getattr(value, "__qualname__", None) or type(value).__qualname__)
