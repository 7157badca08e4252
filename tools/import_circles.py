#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds files of the Python package that import each other: `import_circles.py [PACKAGE_FOLDER]` prints them.

Every import counts: at the top of a file, inside a function, and under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

Graph = dict[Path, dict[Path, int]]  # file -> imported file -> line of the first import


def imports_in(package: Path) -> Graph:
    """Returns the imports between files of `package`, a folder with the package's name."""
    files = {_module_of(package, path): path for path in package.rglob("*.py*") if path.suffix in (".py", ".pyi")}
    graph: Graph = {}
    for path in sorted(files.values()):
        parent = _module_of(package, path) if path.stem == "__init__" else _module_of(package, path.parent)
        graph[path] = {}
        for line, base, names in _statements(ast.parse(path.read_text()), parent.split(".")):
            for name in names:  # `from x import y` imports the module x.y if there is one, else x
                target = files.get(f"{base}.{name}") or files.get(base)
                if target is not None and target != path:
                    graph[path].setdefault(target, line)
    return graph


def _module_of(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _statements(tree: ast.AST, parent: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Returns (line, module, names) for each import; `parent` is the package of relative imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = parent[: len(parent) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield node.lineno, base, [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, [""]) for alias in node.names)


def circles(graph: Graph) -> list[list[Path]]:
    """Returns groups of two or more files that all import each other, directly or through others; the largest first."""
    reached = {path: _reachable(graph, path) for path in graph}
    left, groups = set(graph), []
    for path in graph:
        if path in left:
            group = {path} | {other for other in reached[path] if path in reached[other]}
            left -= group
            groups.append(sorted(group))
    return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)


def _reachable(graph: Graph, start: Path) -> set[Path]:
    seen: set[Path] = set()
    pending = [start]
    while pending:
        for path in graph[pending.pop()].keys() - seen:
            seen.add(path)
            pending.append(path)
    return seen


def main() -> None:
    package = Path(sys.argv[1] if len(sys.argv) > 1 else "python/feedline")
    graph = imports_in(package)
    for group in circles(graph):
        print(f"{len(group)} files")
        for path in group:
            for target, line in graph[path].items():
                if target in group:
                    print(f"  {path}:{line} imports {target}")


if __name__ == "__main__":
    main()
