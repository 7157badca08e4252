# SPDX-License-Identifier: Apache-2.0
"""Finds containers of a dataset that grow with each sample: each worker has its own copy, which is never shared."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from .facts import CodeLocation
from .values import Names

_CONTAINERS = ("dict", "list", "set", "collections.OrderedDict", "collections.defaultdict")
_GROW = ("append", "add", "extend", "update", "setdefault", "insert")
_SHRINK = ("pop", "popitem", "clear", "remove", "discard", "popleft")
_SETUP = ("__init__", "__setstate__", "setup", "prepare")


def growing_in(datasets: list[ast.ClassDef], names: Names) -> Iterator[CodeLocation]:
    """Yields the statements of datasets' methods that add to an attribute which starts empty and never shrinks, and
    methods with a cache of unlimited size.
    """
    for dataset in datasets:
        methods = [_with_self(part) for part in dataset.body if isinstance(part, ast.FunctionDef)]
        empty = {name for method in methods if method.name == "__init__" for name in _empty(method, names)}
        shrunk = {name for method in methods for name in _shrunk(method)}
        for method in methods:
            if method.name in _SETUP:
                continue
            if any(_is_unbounded(one, names) for one in method.decorator_list):
                yield CodeLocation(method.lineno, f"the cache of {method.name}()")
            for line, name in _grown(method):
                if name in empty - shrunk:
                    yield CodeLocation(line, f"self.{name}")


def _with_self(method: ast.FunctionDef) -> ast.FunctionDef:
    """Returns the method with its first parameter called ``self``."""
    parameters = [*method.args.posonlyargs, *method.args.args]
    if not parameters or parameters[0].arg == "self":
        return method
    renamed = copy.deepcopy(method)
    for node in ast.walk(renamed):
        if isinstance(node, ast.Name) and node.id == parameters[0].arg:
            node.id = "self"
    return renamed


def _empty(method: ast.FunctionDef, names: Names) -> Iterator[str]:
    """Yields the attributes that are set to an empty container."""
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        value = node.value
        is_literal = (isinstance(value, ast.Dict) and not value.keys) or (
            isinstance(value, ast.List) and not value.elts
        )
        is_call = isinstance(value, ast.Call) and names.dotted(value.func) in _CONTAINERS
        if is_literal or (is_call and isinstance(value, ast.Call) and not value.args[1:]):
            yield from (name for target in targets if (name := _attribute(target)))


def _grown(method: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and (name := _attribute(target.value)):
                    yield node.lineno, name
        elif isinstance(node, ast.Call) and (name := _method_of(node, _GROW)):
            yield node.lineno, name


def _shrunk(method: ast.FunctionDef) -> Iterator[str]:
    """Yields attributes from which entries are removed, or whose size is checked."""
    for node in ast.walk(method):
        if isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and (name := _attribute(target.value)):
                    yield name
        elif isinstance(node, ast.Call):
            if name := _method_of(node, _SHRINK):
                yield name
            elif isinstance(node.func, ast.Name) and node.func.id == "len":
                yield from (name for argument in node.args if (name := _attribute(argument)))
        elif isinstance(node, ast.Assign) and method.name != "__init__":
            yield from (name for target in node.targets if (name := _attribute(target)))


def _method_of(call: ast.Call, methods: tuple[str, ...]) -> str:
    """Returns NAME for a call to ``self.NAME.method()``, if it is one of `methods`; else ""."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in methods:
        return _attribute(call.func.value)
    return ""


def _attribute(node: ast.expr) -> str:
    """Returns NAME for ``self.NAME``; else ""."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""


def _is_unbounded(node: ast.expr, names: Names) -> bool:
    if isinstance(node, ast.Call):
        is_none = [
            isinstance(one, ast.Constant) and one.value is None
            for one in (*node.args, *(k.value for k in node.keywords))
        ]
        return names.dotted(node.func) == "functools.lru_cache" and any(is_none)
    return names.dotted(node) == "functools.cache"
