# SPDX-License-Identifier: Apache-2.0
"""Finds the copies of a loop's batches to a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .facts import UNKNOWN, Copy
from .values import Names, calls_in, keyword

_DTYPES = ("float", "half", "double", "bfloat", "int", "long", "short", "uint", "bool", "complex", "channels_last")


def copies_in(loop: ast.For, names: Names) -> tuple[Copy, ...]:
    """Returns copies of the loop's own variables or parts of them, in line order."""
    own = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    for node in (one for part in loop.body for one in ast.walk(part)):
        if isinstance(node, ast.comprehension | ast.For) and _names_in(node.iter) & own:
            own |= _names_in(node.target)
        elif isinstance(node, ast.Assign) and _is_part_of(node.value, own):  # x, y = batch
            own |= _names_in(node.targets[0])
    return tuple(sorted((copy for part in loop.body for copy in _copies(part, own, names)), key=lambda one: one.line))


def _is_part_of(node: ast.expr, own: set[str]) -> bool:
    return isinstance(node, ast.Name | ast.Subscript) and bool(_names_in(node) & own)


def _copies(node: ast.AST, own: set[str], names: Names) -> Iterator[Copy]:
    for call in calls_in(node):
        if not (isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda")):
            continue
        base, by_hand = call.func.value, False
        if isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute) and base.func.attr == "pin_memory":
            base, by_hand = base.func.value, True
        while isinstance(base, ast.Subscript | ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name) and base.id in own and _goes_to_device(call, names):
            yield Copy(call.lineno, _is_non_blocking(call, names), by_hand)


def _goes_to_device(call: ast.Call, names: Names) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return True
    target = call.args[0] if call.args else keyword(call, "device")
    if target is None:
        return False
    name = names.dotted(target)
    if name.startswith("torch.") and name.removeprefix("torch.").startswith(_DTYPES):
        return False
    value = names.value(target)
    return not (isinstance(value, str) and value.startswith(("cpu", "mps")))


def _is_non_blocking(call: ast.Call, names: Names) -> bool | None:
    given = keyword(call, "non_blocking")
    value = names.value(given) if given is not None else any(names.value(argument) is True for argument in call.args)
    if any(one.arg is None for one in call.keywords) or value is UNKNOWN:
        return None
    return bool(value)


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
