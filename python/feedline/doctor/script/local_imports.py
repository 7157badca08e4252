# SPDX-License-Identifier: Apache-2.0
"""Datasets and collate functions that a script imports from files next to it, read from their syntax trees."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from .facts import CodeLocation
from .growing_caches import growing_in
from .loaders import call_of, functions_of, is_loader
from .values import Names, calls_in
from .workers import (
    Held,
    cuda_in,
    datasets_of,
    given_to_loaders,
    held_by,
    network_in,
    pools_in,
    run_by_workers,
    video_in,
)

_MOST_FILES = 16
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class LocalImports:
    """Code that workers run, and objects that datasets store, in all files that were read. Each place names its file.

    Attributes:
        loaders: DataLoaders created in these files, which are not examined.
        unread: one sentence for each file that is not valid Python.
    """

    pools: tuple[CodeLocation, ...] = ()
    cuda: tuple[CodeLocation, ...] = ()
    network: tuple[CodeLocation, ...] = ()
    video: tuple[CodeLocation, ...] = ()
    held: tuple[CodeLocation, ...] = ()
    loaders: tuple[CodeLocation, ...] = ()
    unread: tuple[str, ...] = ()
    growing: tuple[CodeLocation, ...] = ()

    def joined(self, other: LocalImports) -> LocalImports:
        """Removes duplicate places."""
        names = self.__dataclass_fields__
        return LocalImports(*(tuple(dict.fromkeys(getattr(self, name) + getattr(other, name))) for name in names))


@dataclass(frozen=True)
class _File:
    """A file to read, and the names that are needed from it. `run` is set if workers call the functions among these
    names.
    """

    path: Path
    wanted: frozenset[str]
    run: bool = False


def read_local_imports(path: str, tree: ast.Module, names: Names, cpus: int) -> LocalImports:
    """Reads the files from which the script at `path` imports dataset classes and functions passed to loaders."""
    folder = Path(path).absolute().parent
    given = {names.dotted(one) for one in given_to_loaders(tree, names)}
    called = {names.dotted(call.func) for call in calls_in(tree)}
    waiting = [*_imported(tree, folder, folder, called), *_run(_imported(tree, folder, folder, given))]
    found, seen = LocalImports(), {_File(Path(path).absolute(), frozenset())}
    while waiting and len({one.path for one in seen}) <= _MOST_FILES:
        file = waiting.pop(0)
        if file in seen:
            continue
        seen.add(file)
        facts, more = _read(file, folder, cpus)
        found = found.joined(facts)
        waiting += more
    return found


def _read(file: _File, folder: Path, cpus: int) -> tuple[LocalImports, list[_File]]:
    """Reads one file, and returns its facts and the files that it imports for the names that are needed."""
    near = file.path.relative_to(folder) if file.path.is_relative_to(folder) else file.path
    try:
        data = file.path.read_bytes()
        if len(data) > _MOST_BYTES:
            return LocalImports(), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data, str(file.path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return LocalImports(unread=(f"{near}, which the script imports, cannot be parsed as Python",)), []
    names, functions = Names(tree, (), cpus), functions_of(tree)
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    wanted = _with_bases(set(file.wanted), classes)
    datasets = [one for one in datasets_of(tree, names) if one.name in wanted]
    given: list[ast.AST] = [functions[name] for name in sorted(file.wanted & set(functions))] if file.run else []
    bodies = run_by_workers(datasets, given, names, functions)
    held: Held = list(held_by(datasets, names))
    loaders = [call for call in calls_in(tree) if is_loader(names, call) and call_of(names, call).workers != 0]

    def here(places: Iterator[CodeLocation] | Held) -> tuple[CodeLocation, ...]:
        return tuple(sorted({replace(one, file=str(near)) for one in places}, key=lambda one: (one.line, one.what)))

    facts = LocalImports(
        here(pools_in(bodies, names)),
        here(cuda_in(bodies, names)),
        here(network_in(bodies, names)),
        here(video_in(bodies, names)),
        here(held),
        here(iter([CodeLocation(call.lineno, "DataLoader") for call in loaders])),
        growing=here(growing_in(datasets, names)),
    )
    made: list[ast.AST] = [*datasets, *(classes[name] for name in wanted & set(classes))]
    more = [_imported(tree, folder, file.path.parent, _used(made, names))]
    more.append(_run(_imported(tree, folder, file.path.parent, _used(bodies, names))))
    return facts, [one for part in more for one in part]


def _run(files: Iterator[_File]) -> Iterator[_File]:
    return (replace(one, run=True) for one in files)


def _used(nodes: list[ast.AST], names: Names) -> set[str]:
    return {names.dotted(one) for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute)}


def _with_bases(wanted: set[str], classes: dict[str, ast.ClassDef]) -> set[str]:
    """Returns the names of classes in `wanted`, and the names of their base classes in the same file."""
    waiting = list(wanted)
    while waiting:
        node = classes.get(waiting.pop())
        for base in node.bases if node is not None else ():
            if isinstance(base, ast.Name) and base.id not in wanted:
                wanted.add(base.id)
                waiting.append(base.id)
    return wanted


def _imported(tree: ast.Module, folder: Path, own: Path, used: set[str]) -> Iterator[_File]:
    """Returns files in `folder` imported for any of the names in `used`; `own` are the importing file's imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                path, wanted = _file_of(folder, one.name), _of_module(one.name, used)
                if path is not None and wanted:
                    yield _File(path, wanted)
        elif isinstance(node, ast.ImportFrom):
            start = folder if not node.level else own.joinpath(*[".."] * (node.level - 1)).resolve()
            yield from _from(node, start, used)


def _from(node: ast.ImportFrom, start: Path, used: set[str]) -> Iterator[_File]:
    module = node.module or ""
    path = _file_of(start, module) if module else None
    if path is not None and any(one.name == "*" for one in node.names):
        yield _File(path, frozenset(one for one in used if one and "." not in one))
        return
    for one in node.names:
        whole = f"{module}.{one.name}" if module else one.name
        inner = _file_of(start, whole)
        if inner is not None:  # a module in a package
            called = (one.asname or one.name) if node.level else whole
            wanted = _of_module(called, used)
            if wanted:
                yield _File(inner, wanted)
        elif path is not None and ({whole, one.asname or one.name} & used):
            yield _File(path, frozenset({one.name}))


def _of_module(name: str, used: set[str]) -> frozenset[str]:
    """Returns the names used from a module, such as ``Photos`` for ``data.Photos``."""
    return frozenset(one.removeprefix(f"{name}.").partition(".")[0] for one in used if one.startswith(f"{name}."))


def _file_of(folder: Path, module: str) -> Path | None:
    base = folder.joinpath(*module.split("."))
    for path in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
        if path.is_file():
            return path.resolve() if path.is_symlink() else path
    return None
