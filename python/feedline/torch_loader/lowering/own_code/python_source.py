# SPDX-License-Identifier: Apache-2.0
"""Finds the syntax tree of a function, and proves that it is the source of the code that runs."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Iterator


class NoSource(Exception):
    """A function's source cannot be found, or does not match its code."""


def tree_of(function: types.FunctionType) -> ast.FunctionDef:
    """Returns the syntax tree of `function`, with the line numbers of its file.

    The file is compiled again, and the result must equal the function's code. Files edited after the import,
    decorators, and import hooks that change code therefore raise an error.

    Raises:
        NoSource: there is no source, or it does not compile to this code.
    """
    code = function.__code__
    try:
        lines, _ = inspect.findsource(function)
    except (OSError, TypeError, SyntaxError, IndexError):
        raise NoSource(f"the source of {function.__qualname__} is not available") from None
    text = "".join(lines)
    try:
        compiled = _compiled(text, code.co_filename)
        found = [other for other in _codes_in(compiled) if _same(code, other)]
        trees = [tree for tree in _functions(text) if _begins_at(tree, code)]
    except (SyntaxError, ValueError, RecursionError):
        found, trees = [], []
    if not found or len(trees) != 1:
        raise NoSource(
            f"the source of {function.__qualname__} differs from its code, because of a decorator or an edited file"
        )
    return trees[0]


@functools.lru_cache(maxsize=32)
def _compiled(text: str, filename: str) -> types.CodeType:
    return compile(text, filename, "exec", dont_inherit=True)


@functools.lru_cache(maxsize=32)
def _functions(text: str) -> tuple[ast.FunctionDef, ...]:
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))


def _begins_at(tree: ast.FunctionDef, code: types.CodeType) -> bool:
    first = tree.decorator_list[0].lineno if tree.decorator_list else tree.lineno
    return tree.name == code.co_name and first == code.co_firstlineno


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes_in(constant)


def _same(one: types.CodeType, other: types.CodeType) -> bool:
    """Returns whether two code objects are equivalent. `==` would also compare column numbers, which an import hook may
    lose.
    """
    if one.co_name != other.co_name or one.co_firstlineno != other.co_firstlineno:
        return False
    return _facts(one) == _facts(other) and _same_constants(one.co_consts, other.co_consts)


def _facts(code: types.CodeType) -> tuple[object, ...]:
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (code.co_code, counts, names, getattr(code, "co_exceptiontable", b""))


def _same_constants(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    if len(one) != len(other):
        return False
    for mine, theirs in zip(one, other, strict=True):
        if isinstance(mine, types.CodeType) and isinstance(theirs, types.CodeType):
            if not _same(mine, theirs):
                return False
        elif type(mine) is not type(theirs) or repr(mine) != repr(theirs):
            return False
    return True
