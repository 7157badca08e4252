# SPDX-License-Identifier: Apache-2.0
"""Evaluates expressions in a script as far as possible: constants, options with defaults, CPU counts."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .facts import UNKNOWN

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.LShift: operator.lshift,
}
_CPU_COUNTS = ("os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "psutil.cpu_count")
_FOLDED = {"min": min, "max": max, "int": int}
_CHANGING = ("update", "setdefault", "pop", "popitem", "clear")
_MOST_DEPTH = 20
_MOST = 1 << 40  # a count of anything


class Names:
    """The names in a script: imports with their full names, and values of names that are bound once."""

    def __init__(self, tree: ast.Module, arguments: Sequence[str], cpus: int) -> None:
        self.modules = dict(_imports(tree))
        self._cpus = cpus
        self._values = dict(_bound_once(tree))
        self.changed = {*_changed(tree)}  # dicts that are modified after their creation
        self._options = _options(tree, arguments, self)

    def dotted(self, node: ast.AST) -> str:
        """Returns the full name, such as ``torch.utils.data.DataLoader``, or "" if the node is not a name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.modules.get(node.id, node.id), *reversed(parts)])

    def bound(self, node: ast.AST) -> ast.AST:
        """Returns the value of a name that is bound once, or else the node itself."""
        return self._values.get(node.id, node) if isinstance(node, ast.Name) else node

    def value(self, node: ast.AST | None, depth: int = 0) -> Any:
        """Returns the value of an expression, which is a number, string, bool or None, or UNKNOWN."""
        if node is None or depth > _MOST_DEPTH:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.value(self._values.get(node.id), depth + 1)
        if isinstance(node, ast.Attribute):
            return self._options.get(node.attr, UNKNOWN) if self._is_options(node.value) else UNKNOWN
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            inner = self.value(node.operand, depth + 1)
            known = isinstance(inner, int | float)
            return UNKNOWN if not known else -inner if isinstance(node.op, ast.USub) else not inner
        if isinstance(node, ast.BinOp):
            return self._computed(node, depth)
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        return UNKNOWN

    def is_cuda(self, node: ast.AST | None, depth: int = 0) -> bool:
        """Whether an expression names a GPU: as a string, as a torch.device, or in either branch of a conditional."""
        if node is None or depth > _MOST_DEPTH:
            return False
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and node.value.startswith("cuda")
        if isinstance(node, ast.IfExp):
            return self.is_cuda(node.body, depth + 1) or self.is_cuda(node.orelse, depth + 1)
        if isinstance(node, ast.Call) and self.dotted(node.func) == "torch.device" and node.args:
            return self.is_cuda(node.args[0], depth + 1)
        return isinstance(node, ast.Name) and self.is_cuda(self._values.get(node.id), depth + 1)

    def _is_options(self, node: ast.AST) -> bool:
        bound = self.bound(node)
        if isinstance(bound, ast.Call) and isinstance(bound.func, ast.Attribute):
            return bound.func.attr in ("parse_args", "parse_known_args")
        return isinstance(node, ast.Name) and node.id in ("args", "opt", "opts", "options", "hparams")

    def _computed(self, node: ast.BinOp, depth: int) -> Any:
        left, right = self.value(node.left, depth + 1), self.value(node.right, depth + 1)
        known = all(isinstance(one, int | float) and abs(one) < _MOST for one in (left, right))
        if not known or type(node.op) not in _OPERATORS or (isinstance(node.op, ast.LShift) and not 0 <= right < 40):
            return UNKNOWN
        try:
            return _OPERATORS[type(node.op)](left, right)
        except (ArithmeticError, TypeError, ValueError):
            return UNKNOWN

    def _called(self, node: ast.Call, depth: int) -> Any:
        name = self.dotted(node.func)
        if name in _CPU_COUNTS:
            return self._cpus
        if name in _FOLDED and node.args and not node.keywords:
            values = [self.value(argument, depth + 1) for argument in node.args]
            if all(isinstance(value, int | float) for value in values):
                return int(values[0]) if name == "int" else _FOLDED[name](values)  # type: ignore[operator]
        return UNKNOWN


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                yield (one.asname, one.name) if one.asname else (one.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)


def _changed(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        written: ast.AST | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            written = node.func.value
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            written = node.value
        if isinstance(written, ast.Name):
            yield written.id


def _bound_once(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Returns names with a single binding in the whole file, in any function."""
    bound: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                        bound.setdefault(name.id, []).append(node.value if name is target else None)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            bound.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.arg):
            bound.setdefault(node.arg, []).append(None)
        elif isinstance(node, ast.AugAssign | ast.For | ast.NamedExpr | ast.comprehension):
            for name in ast.walk(node.target):
                if isinstance(name, ast.Name):
                    bound.setdefault(name.id, []).append(None)
    return ((name, one[0]) for name, one in bound.items() if len(one) == 1 and one[0] is not None)


_TYPES: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}


def _options(tree: ast.Module, arguments: Sequence[str], names: Names) -> dict[str, Any]:
    """Returns argparse options: the values on the script's command line, or the defaults."""
    found: dict[str, Any] = {}
    for call in calls_in(tree):
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
            continue
        flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        given = names.value(keyword(call, "dest"))
        long = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
        name = given if isinstance(given, str) else long.lstrip("-").replace("-", "_")
        action = names.value(keyword(call, "action"))
        default = keyword(call, "default")
        value: Any = None if default is None else names.value(default)
        if action in ("store_true", "store_false"):
            is_given = any(flag in arguments for flag in flags)
            value = is_given if action == "store_true" else not is_given
        else:
            kind = keyword(call, "type")
            text = _given(flags, arguments)
            if text is not None:
                value = _converted(text, names.dotted(kind) if kind is not None else "str")
        if name:
            found[name] = value
    return found


def _given(flags: Sequence[str], arguments: Sequence[str]) -> str | None:
    for i, word in enumerate(arguments):
        name, has_value, value = word.partition("=")
        if name in flags:
            return value if has_value else arguments[i + 1] if i + 1 < len(arguments) else None
    return None


def _converted(text: str, kind: str) -> Any:
    try:
        return _TYPES[kind](text) if kind in _TYPES else UNKNOWN
    except ValueError:
        return UNKNOWN
