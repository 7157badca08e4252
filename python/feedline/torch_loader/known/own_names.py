# SPDX-License-Identifier: Apache-2.0
"""Finds a user's names for the paths and labels of a class, to show them the call that replaces the class.

The code is only searched, not understood: the result is advice.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Any

from .python_source import NoSource, tree_of

_OPENERS = {
    *("open", "imread", "read_image", "decode_image", "decode_jpeg", "pil_loader", "default_loader", "loader"),
    *("load_image", "read_img", "read_image_file", "get_image", "dcmread"),
}
_OPENS_ITSELF = ("open",)  # of PIL.Image; Python's own is no image
_CONVERSIONS = ("torch", "np", "numpy", "int", "float", "str", "F")
_ROOTS = ("root", "dir", "folder", "path")  # names of attributes with a folder


def replacement(kind: type) -> str:
    """The call of Feedline's that makes the same samples; empty if no path was found in the class."""
    method = getattr(kind, "__getitem__", None)
    if not isinstance(method, types.FunctionType):
        return ""
    try:
        tree = tree_of(method)
    except NoSource:
        return ""
    return _Search(tree).call()


class _Search:
    def __init__(self, tree: ast.FunctionDef) -> None:
        arguments = [arg.arg for arg in tree.args.args]
        self._me, self._index = (*arguments, "self", "index")[:2] if len(arguments) == 2 else ("self", "index")
        self._tree = tree
        self._values: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._note(node.targets[0], node.value)

    def call(self) -> str:
        images = [found for found in map(self._column, self._opened()) if found]
        images = list(dict.fromkeys(images))
        if not images:
            return ""
        others = [found for found in map(self._column, self._returned()) if found and found not in images]
        others = list(dict.fromkeys(others))
        frame = images[0][1]
        return self._table(images, others) if frame else self._files(images, others)

    def _files(self, images: list[tuple[str, str]], others: list[tuple[str, str]]) -> str:
        words = [images[0][0]]
        words += [f"{_word(name, f'image{n}')}={name}" for n, (name, _) in enumerate(images[1:], 2)]
        labels = [name for name, column in others if not column]
        words += [f"label={labels[0]}"] if labels else []
        words += [f"{_word(name, f'column{n}')}={name}" for n, name in enumerate(labels[1:], 2)]
        words += self._root()
        return f"feedline.files({', '.join(words)})"

    def _table(self, images: list[tuple[str, str]], others: list[tuple[str, str]]) -> str:
        frame = images[0][0]
        words = [frame, f"image={images[0][1]}"]
        columns = [column for name, column in others if name == frame and column]
        words += [f"label={columns[0]}"] if columns else []
        words += self._root()
        return f"feedline.table({', '.join(words)})"

    def _note(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault(target.id, value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for inner, part in zip(target.elts, value.elts, strict=True):
                self._note(inner, part)
        elif isinstance(target, ast.Tuple):
            for inner in target.elts:
                self._note(inner, value)

    def _opened(self) -> Iterator[ast.expr]:
        """The arguments of the functions that read an image."""
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call) and node.args]
        for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _OPENERS and not (name in _OPENS_ITSELF and isinstance(node.func, ast.Name)):
                yield node.args[0]

    def _returned(self) -> Iterator[ast.expr]:
        """The values of a sample, without results of the user's functions, which are images."""
        returned = [
            node.value for node in ast.walk(self._tree) if isinstance(node, ast.Return) and node.value is not None
        ]
        for value in returned:
            for part in _parts(self._resolved(value)):
                resolved = self._resolved(part)
                if not isinstance(resolved, ast.Call) or ast.unparse(resolved.func).partition(".")[0] in _CONVERSIONS:
                    yield part

    def _resolved(self, node: ast.expr) -> ast.expr:
        return self._values.get(node.id, node) if isinstance(node, ast.Name) else node

    def _column(self, node: ast.expr, depth: int = 0) -> tuple[str, str] | None:
        """(attribute, "") of a list; (attribute, column) of a frame; None if `node` looks nothing up by the index."""
        if depth > 8:
            return None
        if isinstance(node, ast.Name) and node.id in self._values and self._values[node.id] is not node:
            return self._column(self._values[node.id], depth + 1)
        found = self._frame_column(node, depth)
        if found:
            return found
        if isinstance(node, ast.Subscript) and self._is_own(node.value) and self._uses_index(node.slice):
            return f"self.{node.value.attr}", ""  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                found = self._column(child, depth + 1)
                if found:
                    return found
        return None

    def _frame_column(self, node: ast.expr, depth: int) -> tuple[str, str] | None:
        """Columns as in self.df.iloc[index, 0], self.df.iloc[index]["path"], self.df["path"][index] and row.path."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Subscript)):
            row = self._row(node.value, depth)
            if row:
                return row, repr(node.attr)
        if not isinstance(node, ast.Subscript):
            return None
        inner = node.value
        if (
            isinstance(inner, ast.Attribute)
            and inner.attr in ("iloc", "loc", "iat", "at")
            and self._is_own(inner.value)
        ):
            frame = f"self.{inner.value.attr}"  # type: ignore[attr-defined]
            if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
                return frame, _column_name(frame, node.slice.elts[1])
            return None
        row = self._row(inner, depth)
        if row:
            return row, _column_name(row, node.slice)
        while isinstance(inner, ast.Attribute) and inner.attr in ("values", "iloc", "loc"):
            inner = inner.value
        if not isinstance(inner, ast.Subscript) or not self._is_own(inner.value) or not self._uses_index(node.slice):
            return None
        if isinstance(inner.slice, ast.Constant) and isinstance(inner.slice.value, str):
            return f"self.{inner.value.attr}", repr(inner.slice.value)  # type: ignore[attr-defined]
        return None

    def _row(self, node: ast.expr, depth: int) -> str:
        """The frame of which `node` is a row; empty if it is not one."""
        if isinstance(node, ast.Name) and node.id in self._values and depth < 8:
            return self._row(self._values[node.id], depth + 1)
        if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Tuple):
            return ""
        inner = node.value
        if isinstance(inner, ast.Attribute) and inner.attr in ("iloc", "loc") and self._is_own(inner.value):
            return f"self.{inner.value.attr}"  # type: ignore[attr-defined]
        return ""

    def _is_own(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self._me

    def _uses_index(self, node: ast.expr) -> bool:
        return any(isinstance(inner, ast.Name) and inner.id == self._index for inner in ast.walk(node))

    def _root(self) -> list[str]:
        """The argument for the folder of all paths, if they have one."""
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call) and node.args]
        joins = [node.args[0] for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "join"]
        names = {ast.unparse(first) for first in joins if self._is_own(first)}
        roots = [name for name in names if any(word in name for word in _ROOTS)]
        return [f"root={roots[0]}"] if len(roots) == 1 == len(names) else []


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, (ast.Tuple, ast.List)):
        return list(node.elts)
    return list(node.values) if isinstance(node, ast.Dict) else [node]


def _column_name(frame: str, node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return f"{frame}.columns[{node.value}]"
    return ast.unparse(node)


def _word(name: str, otherwise: str) -> str:
    """The name of a field for an attribute such as self.mask_paths."""
    word = name.rpartition(".")[2].strip("_")
    for ending in ("_paths", "_files", "_list", "_names", "_dir", "paths", "s"):
        word = word.removesuffix(ending)
    return word if word.isidentifier() else otherwise


def advice(kind: type) -> str:
    """What replaces an `except` in `__getitem__`; empty if there is none."""
    method: Any = getattr(kind, "__getitem__", None)
    try:
        catches = any(isinstance(node, ast.Try) for node in ast.walk(tree_of(method)))
    except (NoSource, AttributeError):
        return ""
    return 'on_error="skip" skips unreadable files; ' if catches else ""
