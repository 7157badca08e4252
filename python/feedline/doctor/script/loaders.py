# SPDX-License-Identifier: Apache-2.0
"""The DataLoaders in a script: their arguments, the names bound to them, and the loops over them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from .copying import copies_in
from .facts import DEFAULTS, UNKNOWN, LoaderCall, Loop
from .values import Names, calls_in

_POSITIONS = ("dataset", *list(DEFAULTS)[:6])
_MAKERS = ("torch.utils.data.DataLoader", "feedline.DataLoader", "torchdata.stateful_dataloader.StatefulDataLoader")
_WRAPPERS = ("enumerate", "tqdm", "tqdm.tqdm", "tqdm.auto.tqdm", "zip", "iter", "islice", "itertools.islice")
_CLOCKS = ("time.time", "time.perf_counter", "time.monotonic", "timeit.default_timer")
Functions = dict[str, ast.FunctionDef | ast.AsyncFunctionDef]
Named = dict[str, tuple[LoaderCall, ...]]
Of = Callable[[ast.AST], tuple[LoaderCall, ...]]


def is_loader(names: Names, call: ast.Call) -> bool:
    name = names.dotted(call.func)
    return name in _MAKERS or name in ("DataLoader", "torch.utils.data.dataloader.DataLoader", "data.DataLoader")


def call_of(names: Names, call: ast.Call) -> LoaderCall:
    arguments: dict[str, object] = {}
    is_open = any(isinstance(argument, ast.Starred) for argument in call.args)
    for name, node in zip(_POSITIONS, call.args, strict=False):
        arguments[name] = names.value(node)
    for one in call.keywords:
        if one.arg is not None:
            arguments[one.arg] = names.value(one.value)
            continue
        known = _options_of(names, one.value)
        is_open |= known is None
        arguments |= known or {}
    return LoaderCall(call.lineno, arguments, is_open, names.dotted(call.func).startswith("feedline."))


def _options_of(names: Names, node: ast.expr) -> dict[str, object] | None:
    """Returns the arguments in ``**options``, or None if the dict is unknown."""
    if isinstance(node, ast.Name) and node.id in names.changed:
        return None
    bound = names.bound(node)
    if isinstance(bound, ast.Dict) and all(isinstance(key, ast.Constant) for key in bound.keys):
        keys = [key.value for key in bound.keys if isinstance(key, ast.Constant)]
        return {str(key): names.value(value) for key, value in zip(keys, bound.values, strict=True)}
    if isinstance(bound, ast.Call) and names.dotted(bound.func) == "dict" and not bound.args:
        return {one.arg: names.value(one.value) for one in bound.keywords if one.arg is not None}
    return None


def functions_of(tree: ast.Module) -> Functions:
    """Returns all function definitions by name, including nested ones; for a repeated name, only the last
    definition.
    """
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def names_of_loaders(tree: ast.Module, names: Names, functions: Functions) -> Named:
    """Returns the expressions that refer to a loader: variables, ``self.loader``, and parameters to which it is
    passed.
    """
    made = {call: call_of(names, call) for call in calls_in(tree) if is_loader(names, call)}
    found: dict[str, dict[int, LoaderCall]] = {}

    def of(node: ast.AST) -> tuple[LoaderCall, ...]:
        if isinstance(node, ast.Call):
            if node in made:
                return (made[node],)
            called = names.dotted(node.func).rpartition(".")[2]
            if called in functions:
                returns = [
                    one.value for one in ast.walk(functions[called]) if isinstance(one, ast.Return) and one.value
                ]
                return tuple(
                    call for value in returns if not isinstance(value, ast.Call) or value in made for call in of(value)
                )
            return ()
        return tuple(found.get(ast.unparse(node), {}).values()) if isinstance(node, ast.Name | ast.Attribute) else ()

    def add(name: str, calls: tuple[LoaderCall, ...]) -> None:
        found.setdefault(name, {}).update({call.line: call for call in calls})

    for _ in range(3):  # a loader created in one function, passed to a second, and from there to a third
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    _assign(target, node.value, of, add)
            elif isinstance(node, ast.Call):
                called = names.dotted(node.func).rpartition(".")[2]
                if called in functions:
                    for parameter, argument in _passed(functions[called], node):
                        if calls := of(argument):
                            add(parameter, calls)
    return {name: tuple(calls.values()) for name, calls in found.items()}


def _assign(target: ast.expr, value: ast.expr, of: Of, add: Callable[[str, tuple[LoaderCall, ...]], None]) -> None:
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
    for left, right in pairs:
        if isinstance(left, ast.Name | ast.Attribute) and (calls := of(right)):
            add(ast.unparse(left), calls)


def _passed(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if parameters[:1] == ["self"] and isinstance(call.func, ast.Attribute):
        parameters = parameters[1:]
    yield from zip(parameters, call.args, strict=False)
    yield from ((one.arg, one.value) for one in call.keywords if one.arg is not None)


def loaders_behind(node: ast.expr, names: Names, named: Named) -> tuple[LoaderCall, ...]:
    """Returns the loaders that a loop over `node` reads: ``enumerate(tqdm(loader))`` reads the loader."""
    if isinstance(node, ast.Call):
        if is_loader(names, node):
            return (call_of(names, node),)
        if names.dotted(node.func) in _WRAPPERS or names.dotted(node.func).rpartition(".")[2] in ("tqdm", "islice"):
            return tuple(call for argument in node.args for call in loaders_behind(argument, names, named))
        return ()
    return named.get(ast.unparse(node), ()) if isinstance(node, ast.Name | ast.Attribute) else ()


def loops_of(tree: ast.Module, names: Names, named: Named) -> list[Loop]:
    around = _epochs_around(tree, names)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and (calls := loaders_behind(node.iter, names, named)):
            uses, timed = _use_of(node, names)
            found.append(Loop(node.lineno, calls, copies_in(node, names), around.get(node), uses, timed))
    return found


def _use_of(loop: ast.For, names: Names) -> tuple[bool, int | None]:
    """Returns whether the loop reads its batch, and the line of a clock that the loop reads only after the batch."""
    own = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    if isinstance(loop.iter, ast.Call) and names.dotted(loop.iter.func) == "enumerate" and len(own) > 1:
        own -= {one.id for one in ast.walk(loop.target.elts[0]) if isinstance(one, ast.Name)}  # type: ignore[attr-defined]
    used = False
    for statement in loop.body:
        clocks = [call.lineno for call in calls_in(statement) if names.dotted(call.func) in _CLOCKS]
        if clocks:
            return used or _reads(loop, own), clocks[0] if used else None
        used = used or _reads(statement, own)
    return used, None


def _reads(node: ast.AST, own: set[str]) -> bool:
    return any(isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id in own for one in ast.walk(node))


def _epochs_around(tree: ast.Module, names: Names) -> dict[ast.AST, int]:
    """Returns the number of times that each loop is run by an enclosing loop over a range, directly or through a
    function call.
    """
    direct: dict[ast.AST, int] = {}
    called: dict[str, int] = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.For) and isinstance(node.iter, ast.Call)):
            continue
        if names.dotted(node.iter.func) != "range" or not node.iter.args:
            continue
        count = names.value(node.iter.args[-1] if len(node.iter.args) == 1 else node.iter.args[1])
        if count is UNKNOWN or not isinstance(count, int):
            continue
        for inner in (one for part in node.body for one in ast.walk(part)):
            if isinstance(inner, ast.For):
                direct.setdefault(inner, count)
            elif isinstance(inner, ast.Call):
                called.setdefault(names.dotted(inner.func).rpartition(".")[2], count)
    for function in functions_of(tree).values():
        if function.name in called:
            for inner in ast.walk(function):
                if isinstance(inner, ast.For):
                    direct.setdefault(inner, called[function.name])
    return direct
