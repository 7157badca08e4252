# SPDX-License-Identifier: Apache-2.0
"""Analyses the statements of a `__getitem__` and of the user's functions that it calls, without running them."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .python_source import NoSource, tree_of
from .sample_calls import Calls
from .sample_expressions import Scope, set_item
from .sample_values import UNDEFINED, Known, Made, Opened, Picture, Plain, Refused, Row, Value, has_image

UNUSUAL = "_feedline_unusual"  # the exception that the made function raises for samples that the dataset itself reads
_DEEPEST = 8  # functions within each other; a recursive one is refused
_GENERATOR = 0x20  # CO_GENERATOR of code objects


class _Returned(Exception):
    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Statements(Calls):
    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset)
        self._blocks = 0  # `with` blocks so far
        self._branches = 0  # within each other, of which only some samples run each

    # -- functions

    def call_function(
        self, node: ast.AST, function: types.FunctionType, args: list[Value], named: dict[str, Value]
    ) -> Value:
        if len(self.scopes) >= _DEEPEST:
            raise Refused(node, f"{function.__qualname__} calls too many functions")
        tree = source_tree(function)
        names = self._bound(node, tree, function, args, named)
        self.scopes.append(Scope(function, names, inner=bool(self.scopes)))
        loops, self.loops = self.loops, []
        try:
            self._block(tree.body)
        except _Returned as returned:
            value: Value = returned.value
            return value
        except Refused as refused:
            if len(self.scopes) > 1 and "of " not in refused.why.partition(":")[0]:
                line, _, why = refused.why.partition(": ")
                raise Refused(None, f"{line} of {function.__qualname__}: {why}") from None
            raise
        finally:
            self.loops = loops
            self.scopes.pop()
        return Known(None)

    def _bound(
        self,
        node: ast.AST,
        tree: ast.FunctionDef,
        function: types.FunctionType,
        args: list[Value],
        named: dict[str, Value],
    ) -> dict[str, Value]:
        if tree.decorator_list and not _is_static(tree):
            raise Refused(node, f"{function.__qualname__} has a decorator")
        given = tree.args
        positional = [arg.arg for arg in (*given.posonlyargs, *given.args)]
        if given.vararg or given.kwarg or len(args) > len(positional):
            raise Refused(node, f"the parameters of {function.__qualname__} are not supported")
        if function.__code__.co_flags & _GENERATOR:
            raise Refused(node, f"{function.__qualname__} is a generator")
        defaults = function.__defaults__ or ()
        names: dict[str, Value] = {
            name: Known(value)
            for name, value in zip(positional[len(positional) - len(defaults) :], defaults, strict=True)
        }
        names |= {name: Known(value) for name, value in (function.__kwdefaults__ or {}).items()}
        names |= dict(zip(positional, args, strict=False))
        names |= named
        expected = {*positional, *(arg.arg for arg in given.kwonlyargs)}
        if set(names) != expected:
            raise Refused(node, f"the arguments of {function.__qualname__} do not match its parameters")
        return names

    # -- statements

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            method: Callable[[Any], None] | None = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
            if method is None:
                raise Refused(statement, f"{type(statement).__name__.lower()!r} statements are not supported")
            method(statement)

    def _do_pass(self, node: ast.Pass) -> None:
        pass

    def _do_expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        value = self.value(node.value)
        if not (isinstance(value, Known) and value.value is None):
            raise Refused(node, "a value is computed but not used")

    def _do_return(self, node: ast.Return) -> None:
        raise _Returned(Known(None) if node.value is None else self.value(node.value))

    def _do_assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise Refused(node, "assignments to several variables are not supported")
        self._assign(node.targets[0], self.value(node.value))

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self.value(node.value))

    def _do_augassign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise Refused(node, f"{ast.unparse(node.target)} is changed for each sample")
        old = self._name(ast.Name(node.target.id, ast.Load(), lineno=node.lineno))
        code = self.as_plain(node, old).code
        code = ast.Call(ast.Name("_feedline_immutable", ast.Load()), [code], [])
        added = ast.BinOp(code, node.op, self.plain(node.value).code)
        self._assign(node.target, Plain(added, checked=True))

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            if any(target.id in before for before in self.loops):
                raise Refused(target, f"{target.id!r} is changed in a loop")
            self.scope.names[target.id] = self.stored(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value)
        elif isinstance(target, ast.Subscript):
            self._assign_item(target, value)
        else:
            raise Refused(target, f"{ast.unparse(target)} is changed for each sample")

    def _unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        count = len(target.elts)
        if isinstance(value, Made) and value.kind is not dict and len(value.items) == count:
            parts = list(map(self.stored, value.items))
        elif isinstance(value, Known) and type(value.value) in (tuple, list) and len(value.value) == count:
            parts = [Known(item) for item in value.value]
        else:
            names = [self.writer.name() for _ in target.elts]
            stores: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
            self._emit(ast.Assign([ast.Tuple(stores, ast.Store())], self.as_plain(target, value).code))
            parts = [Plain(ast.Name(name, ast.Load())) for name in names]
        for inner, part in zip(target.elts, parts, strict=True):
            self._assign(inner, part)

    def _assign_item(self, target: ast.Subscript, value: Value) -> None:
        base = self.value(target.value)
        key = self.value(target.slice)
        if (
            isinstance(base, Made)
            and base.kind is dict
            and isinstance(key, Known)
            and not self.loops
            and not self._branches
        ):
            set_item(base, key.value, self.stored(value))
        elif isinstance(base, Plain) and base.fresh and isinstance(base.code, ast.Name):
            place = ast.Subscript(base.code, self.as_plain(target, key).code, ast.Store())
            self._emit(ast.Assign([place], self.as_plain(target, value).code))
        else:
            raise Refused(target, f"{ast.unparse(target)} is changed for each sample")

    def _do_if(self, node: ast.If) -> None:
        change = node.body[0]
        if isinstance(change, ast.Assign) and len(node.body) == len(change.targets) == 1 and not node.orelse:
            converted = self.converted_if_needed(node.test, change.value, change.targets[0])
            if converted is not None:
                self._assign(change.targets[0], converted)
                return
        test = self.value(node.test)
        if isinstance(test, Known):
            self._block(node.body if self.truth(node, test) else node.orelse)
            return
        condition = self.as_plain(node.test, test)
        if isinstance(node.body[-1], ast.Raise) and not node.orelse:
            unusual: ast.stmt = ast.Raise(ast.Name(UNUSUAL, ast.Load()), None)
            self._emit(ast.If(condition.code, [unusual], []))
            return
        if not self._is_kind_of_index(node.test):
            self.check_condition(node, condition)
        before = dict(self.scope.names)
        branches = [self._branch(node, statements, before) for statements in (node.body, node.orelse)]
        self._join(node, condition, before, branches)

    def _is_kind_of_index(self, test: ast.expr) -> bool:
        """Returns whether `test` checks if the index is a tensor, as in torch's tutorial; samplers do not return
        tensors.
        """
        return isinstance(test, ast.Call) and ast.unparse(test.func) in ("torch.is_tensor", "isinstance", "is_tensor")

    def _branch(self, node: ast.If, statements: list[ast.stmt], before: dict[str, Value]) -> Any:
        outer, self.writer.statements = self.writer.statements, []
        self.scope.names = dict(before)
        calls = len(self.writer.called)
        self._branches += 1
        try:
            self._block(statements)
        except _Returned:
            raise Refused(node, "the code handles some samples differently") from None
        finally:
            self._branches -= 1
            emitted, self.writer.statements = self.writer.statements, outer
        if len(self.writer.called) != calls:
            raise Refused(node, "some samples call different functions")
        return emitted, self.scope.names

    def _join(self, node: ast.If, condition: Plain, before: dict[str, Value], branches: Any) -> None:
        (then, names), (other, other_names) = branches
        joined = dict(before)
        for name in {*names, *other_names}:
            one, two = names.get(name, UNDEFINED), other_names.get(name, UNDEFINED)
            if one is two:
                joined[name] = one
            elif one is UNDEFINED or two is UNDEFINED:
                joined[name] = UNDEFINED
            elif has_image(one) or has_image(two) or isinstance(one, Made) or isinstance(two, Made):
                raise Refused(node, "the code handles some samples differently")
            else:
                store = self.writer.name()
                for emitted, value in ((then, one), (other, two)):
                    emitted.append(ast.Assign([ast.Name(store, ast.Store())], self.part(node, value)))
                is_index = any(isinstance(value, Plain) and value.is_index for value in (one, two))
                joined[name] = Plain(ast.Name(store, ast.Load()), is_index=is_index)
        self.scope.names = joined
        self._emit(ast.If(condition.code, then or [ast.Pass()], other))

    def _do_assert(self, node: ast.Assert) -> None:
        test = self.value(node.test)
        if isinstance(test, Known):
            if not self.truth(node, test):
                raise Refused(node, "the assertion fails")
            return
        unusual: ast.stmt = ast.Raise(ast.Name(UNUSUAL, ast.Load()), None)
        self._emit(ast.If(ast.UnaryOp(ast.Not(), self.as_plain(node, test).code), [unusual], []))

    def _do_for(self, node: ast.For) -> None:
        """Analyses a loop that fills an array or tensor created by the sample's code."""
        rows = self.plain(node.iter).code
        outer, self.writer.statements = self.writer.statements, []
        before = dict(self.scope.names)
        try:
            target = self.loop_target(node.target)
            self.loops.append(frozenset(before))
            self._block(node.body)
        except _Returned:
            raise Refused(node, "a loop returns") from None
        finally:
            self.loops = self.loops[:-1] if self.loops else []
            emitted, self.writer.statements = self.writer.statements, outer
            self.scope.names = before
        if node.orelse or any(isinstance(value, Made) for value in before.values()):
            raise Refused(node, "this loop is not supported")
        self._emit(ast.For(target, rows, emitted or [ast.Pass()], []))

    def _do_with(self, node: ast.With) -> None:
        self._blocks += 1
        block = self._blocks
        for item in node.items:
            opened = self.value(item.context_expr)
            if not isinstance(opened, (Opened, Picture)) or not isinstance(item.optional_vars, ast.Name):
                raise Refused(node, "only files and images are supported after 'with'")
            if isinstance(opened, Picture):
                opened = replace(opened, block=block)
            self.scope.names[item.optional_vars.id] = opened
        self._block(node.body)
        for name, value in self.scope.names.items():  # an image that was not converted is read after its file is closed
            if isinstance(value, Opened) or (isinstance(value, Picture) and value.block):
                self.scope.names[name] = UNDEFINED

    # -- writing

    def _emit(self, statement: ast.stmt) -> None:
        self.writer.statements.append(statement)

    def stored(self, value: Value) -> Value:
        """Returns `value` as a variable that is computed at this point."""
        if isinstance(value, Made):
            value.items[:] = map(self.stored, value.items)
            return value  # the same object, of which there may be several names
        if isinstance(value, Picture):
            return replace(value, path=self.stored(value.path))
        if isinstance(value, Opened):
            return Opened(self.stored(value.path))
        if not isinstance(value, Plain) or isinstance(value.code, (ast.Name, ast.Constant)):
            return value
        if value.row is not None:
            return self._stored_row(value.row)
        name = self.writer.name()
        self._emit(ast.Assign([ast.Name(name, ast.Store())], value.code))
        return replace(value, code=ast.Name(name, ast.Load()))

    def _stored_row(self, row: Row) -> Plain:
        """Stores the index of a row, and raises the error of its lookup at this point."""
        index = self.stored(Plain(row.index)).code
        self._emit(ast.Expr(ast.Call(self.writer.constant(row.rows.check), [index], [])))
        return Plain(self.row_code(row.rows, index), row=Row(row.rows, index))


def source_tree(function: types.FunctionType) -> ast.FunctionDef:
    try:
        return tree_of(function)
    except NoSource as error:
        raise Refused(None, str(error)) from None


def _is_static(tree: ast.FunctionDef) -> bool:
    names = [ast.unparse(decorator) for decorator in tree.decorator_list]
    return names == ["staticmethod"]
