# SPDX-License-Identifier: Apache-2.0
"""Finds the names of paths and labels in a user's class, to suggest a call that replaces the class.

The code is only searched, not fully analysed, so the result is only a suggestion.
"""

from __future__ import annotations

import ast
import copy
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
    """Returns the Feedline call that creates the same samples, and what the call cannot replace; empty if no path was
    found in the class.
    """
    for base in kind.__mro__:
        method = vars(base).get("__getitem__")
        if not isinstance(method, types.FunctionType):
            continue
        try:
            search = _Search(tree_of(method))
        except NoSource:
            return ""
        call = search.call()
        if call:
            together = " whose operations transform a sample's images together," if search.images > 1 else ""
            return f"{call},{together} with your own code in its .map()"
        if "super" not in method.__code__.co_names:
            return ""
    return ""


class _Search:
    def __init__(self, tree: ast.FunctionDef) -> None:
        arguments = [arg.arg for arg in tree.args.args]
        self._me, self._index = (*arguments, "self", "index")[:2] if len(arguments) == 2 else ("self", "index")
        self._tree = tree
        self.images = 0  # images of a sample in the call that call() returned
        self._values: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._note(node.targets[0], node.value)
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                self._note(node.optional_vars, node.context_expr)

    def call(self) -> str:
        paths = [(node, found) for node in self._opened() for found in [self._column(node)] if found]
        images = sorted(dict.fromkeys(found for _, found in paths), key=_is_mask)
        if not images:
            return ""
        derived = self._derived(paths)
        self.images = len(images) + len(derived)
        others = [found for found in map(self._column, self._returned()) if found and found not in images]
        others = list(dict.fromkeys(others))
        frame = images[0][1]
        return self._table(images, others) if frame else self._files(images, others, derived)

    def _files(self, images: list[tuple[str, str]], others: list[tuple[str, str]], derived: list[str]) -> str:
        words = [images[0][0], *derived]
        words += [f"{_word(name, f'image{n}')}={name}" for n, (name, _) in enumerate(images[1:], 2)]
        labels = [name for name, column in others if not column]
        words += [f"label={labels[0]}"] if labels else []
        words += [f"{_word(name, f'column{n}')}={name}" for n, name in enumerate(labels[1:], 2)]
        words += self._root()
        return f"feedline.files({', '.join(words)})"

    def _derived(self, paths: list[tuple[ast.expr, tuple[str, str]]]) -> list[str]:
        """Returns a field for each further image whose path is computed from that of the first image."""
        first, column = paths[0]
        texts = {ast.unparse(self._of_path(first))}
        fields: list[str] = []
        for node, found in paths[1:]:
            text = ast.unparse(self._of_path(node))
            if found == column and not column[1] and text not in texts:
                texts.add(text)
                fields.append(f"{'image' if fields else 'mask'}{len(fields) + 1 if fields else ''}=")
                fields[-1] += f"[{text} for path in {column[0]}]"
        return fields

    def _of_path(self, node: ast.expr) -> ast.expr:
        """Returns a path's expression without local variables, in which the looked-up text is named `path`."""
        search, depth = self, 0

        class Inlined(ast.NodeTransformer):
            def visit_Name(self, name: ast.Name) -> ast.expr:
                nonlocal depth
                value = search._values.get(name.id)
                if value is None or depth >= 8:
                    return name
                depth += 1
                made: ast.expr = self.visit(copy.deepcopy(value))
                depth -= 1
                return made

            def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
                if search._is_own(node.value) and search._uses_index(node.slice):
                    return ast.Name("path", ast.Load())
                self.generic_visit(node)
                return node

        made: ast.expr = Inlined().visit(copy.deepcopy(node))
        return made

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
        """Yields the arguments of the functions that read an image."""
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call) and node.args]
        for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _OPENERS and not (name in _OPENS_ITSELF and isinstance(node.func, ast.Name)):
                yield node.args[0]

    def _returned(self) -> Iterator[ast.expr]:
        """Yields the values of a sample, except the results of the user's functions, since those are images."""
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
        """Returns (attribute, "") for a list and (attribute, column) for a data frame; None if `node` does not look up
        a value by the index.
        """
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
        """Recognises columns such as self.df.iloc[index, 0], self.df.iloc[index]["path"], self.df["path"][index] and
        row.path.
        """
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
        """Returns the data frame of which `node` is a row; empty if it is not a row."""
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

    def _uses_index(self, node: ast.expr, depth: int = 0) -> bool:
        names = [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]
        values = [self._values[name] for name in names if name in self._values] if depth < 8 else []
        return self._index in names or any(self._uses_index(value, depth + 1) for value in values)

    def _root(self) -> list[str]:
        """Returns the argument for the folder that contains all paths, if they have a common one."""
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call) and node.args]
        joins = [node.args[0] for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "join"]
        names = {ast.unparse(first) for first in joins if self._is_own(first)}
        roots = [name for name in names if any(word in name for word in _ROOTS)]
        return [f"root={roots[0]}"] if len(roots) == 1 == len(names) else []


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, (ast.Tuple, ast.List)):
        return list(node.elts)
    return list(node.values) if isinstance(node, ast.Dict) else [node]


def _is_mask(found: tuple[str, str]) -> bool:
    return _word(found[0], "").startswith(("mask", "seg"))


def _column_name(frame: str, node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return f"{frame}.columns[{node.value}]"
    return ast.unparse(node)


def _word(name: str, otherwise: str) -> str:
    """Returns a field name for an attribute such as self.mask_paths."""
    word = name.rpartition(".")[2].strip("_")
    for ending in ("_paths", "_files", "_list", "_names", "_dir", "paths", "s"):
        word = word.removesuffix(ending)
    return word if word.isidentifier() else otherwise


def advice(kind: type) -> str:
    """Returns a suggestion to replace an `except` in `__getitem__`; empty if the method has no `except`."""
    method: Any = getattr(kind, "__getitem__", None)
    try:
        catches = any(isinstance(node, ast.Try) for node in ast.walk(tree_of(method)))
    except (NoSource, AttributeError):
        return ""
    return 'on_error="skip" skips unreadable files; ' if catches else ""
