# SPDX-License-Identifier: Apache-2.0
"""Analyses operators, containers and comprehensions of a `__getitem__` without running it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from . import frames, plain_values
from .sample_expressions import Expressions, load, name_of, set_item
from .sample_values import Known, Made, Picture, Plain, Refused, Row, Value, has_image


class Operators(Expressions):
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
        of_frame = self._of_frame(node, base, key)
        if of_frame is not None:
            return of_frame
        code = ast.Subscript(self.as_plain(node, base).code, self.as_plain(node, key).code, ast.Load())
        return Plain(code)

    def _of_frame(self, node: ast.AST, base: Value, key: Value) -> Plain | None:
        """Returns a lookup in a pandas frame, series or row by its columns; None for all others."""
        if isinstance(base, Plain):
            if base.row is None or not isinstance(key, Known):
                return None
            column = base.row.rows.column(key.value)
            return None if column is None else self.column_value(column, base.row.index)
        if isinstance(key, Made) and key.kind is tuple and len(key.items) == 2 and isinstance(key.items[1], Known):
            column = frames.scalar_column(base.value, key.items[1].value)
            return None if column is None else self.column_value(column, self.as_plain(node, key.items[0]).code)
        if not isinstance(key, Plain):
            return None
        column = frames.series_column(base.value)
        if column is not None:
            return self.column_value(column, self.as_plain(node, key).code)
        rows = frames.rows_of(base.value)
        if rows is None:
            return None
        index = self.as_plain(node, key).code
        return Plain(self.row_code(rows, index), row=Row(rows, index))

    def _item(self, node: ast.AST, base: Made, key: Value) -> Value:
        if isinstance(key, Known):
            if base.kind is dict and key.value in base.keys:
                return base.items[base.keys.index(key.value)]
            if base.kind is not dict and type(key.value) is int and -len(base.items) <= key.value < len(base.items):
                return base.items[key.value]
        if not has_image(base):
            return Plain(ast.Subscript(self.as_plain(node, base).code, self.as_plain(node, key).code, ast.Load()))
        raise Refused(node, "this lookup of an item is not supported")

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

    def converted_if_needed(self, test: ast.expr, converted: ast.expr, unchanged: ast.expr) -> Picture | None:
        """Recognises ``image.convert("RGB") if image.mode != "RGB" else image``, which has the pixels of
        ``image.convert("RGB")``. Returns the converted image; None for other code.
        """
        if not (
            isinstance(test, ast.Compare)
            and len(test.ops) == 1
            and isinstance(test.left, ast.Attribute)
            and test.left.attr == "mode"
            and isinstance(test.left.value, ast.Name)
        ):
            return None
        if isinstance(test.ops[0], ast.Eq):
            converted, unchanged = unchanged, converted
        name, mode = test.left.value.id, ast.unparse(test.comparators[0])
        is_conversion = ast.unparse(converted) == f"{name}.convert({mode})" and ast.unparse(unchanged) == name
        if not is_conversion or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
            return None
        image = self.value(test.left.value)
        made = self.value(converted) if isinstance(image, Picture) and image.code is not None else None
        # an image in the right mode is not read here, so its file must remain open
        return replace(made, block=image.block) if isinstance(made, Picture) else None

    def _ifexp(self, node: ast.IfExp) -> Value:
        picture = self.converted_if_needed(node.test, node.body, node.orelse)
        if picture is not None:
            return picture
        test = self.value(node.test)
        if isinstance(test, Known):
            return self.value(node.body if self.truth(node, test) else node.orelse)
        plain = self.as_plain(node, test)
        self.check_condition(node, plain)
        body, other = self.value(node.body), self.value(node.orelse)
        if has_image(body) or has_image(other):
            raise Refused(node, "the code handles some samples differently")
        return Plain(ast.IfExp(plain.code, self.part(node, body), self.part(node, other)))

    def check_condition(self, node: ast.AST, condition: Plain) -> None:
        if condition.is_index:
            raise Refused(node, "the code handles some samples differently, depending on their index")

    def _folded(self, node: ast.AST, code: ast.expr, values: Any, is_index: bool) -> Value:
        """Returns the value of `code` as a constant if it depends only on constants."""
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
        """Returns whether a constant is true. Raises Refused if this would call user code."""
        kind = type(value.value)
        package = kind.__module__.partition(".")[0]
        own = any(hasattr(kind, name) for name in ("__bool__", "__len__"))
        if own and not plain_values.is_plain(value.value) and package not in ("torch", "torchvision"):
            raise Refused(node, f"the truth value of {kind.__qualname__} is computed by its own code")
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
                    raise Refused(node, "the keys of ** are unknown")
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
            raise Refused(node, "this loop variable is not supported")
        name = self.writer.name()
        self.scope.names[node.id] = Plain(load(name))
        return ast.Name(name, ast.Store())


def _has_no_equality(value: Any) -> bool:
    """Returns whether `value` is equal only to itself."""
    compare: Any = object.__eq__
    return getattr(type(value), "__eq__", None) is compare
