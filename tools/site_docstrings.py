# SPDX-License-Identifier: Apache-2.0
"""Converts docstrings to the site's Markdown: an extension of Griffe, which mkdocs.yml names.

The package's docstrings are written for ``help()``: roles as ``:class:`Loader```, and code after ``::``. A role becomes
a link if it names something public, and code otherwise; code after ``::`` becomes a block of Python.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
LITERAL = re.compile(r"^( *)([^\n]*?)::\n\n((?:\1 {4}[^\n]*\n|\n)+)", re.MULTILINE)


def public_names() -> set[str]:
    tree = ast.parse((Path(__file__).parents[1] / "python" / "feedline" / "__init__.py").read_text())
    values = (node.value for node in tree.body if isinstance(node, ast.Assign) and _is_all(node))
    return {*ast.literal_eval(next(values)), "DataLoader"}


def _is_all(node: ast.Assign) -> bool:
    return [getattr(target, "id", None) for target in node.targets] == ["__all__"]


def as_markdown(text: str, names: set[str]) -> str:
    """Returns a docstring's text with links to `names`, which belong to the package, and with code blocks as Python."""

    def linked(found: re.Match[str]) -> str:
        name = found[1].removeprefix("feedline.")
        first = name.partition(".")[0]
        return f"[`{found[1]}`][feedline.{name}]" if first in names else f"`{found[1]}`"

    def fenced(found: re.Match[str]) -> str:
        indent, before = found[1], found[2]
        code = re.sub(rf"^{indent} {{4}}", indent, found[3].rstrip("\n"), flags=re.MULTILINE)
        said = f"{indent}{before}:\n\n" if before else ""
        return f"{said}{indent}```python\n{code}\n{indent}```\n\n"

    text = text.replace("feedline._engine.", "feedline.")  # the public name of a class of the engine
    return ROLE.sub(linked, LITERAL.sub(fenced, text + "\n")).rstrip("\n")


class Docstrings(griffe.Extension):
    """Changes each docstring once, when its object is loaded."""

    def __init__(self) -> None:
        self._names = public_names()

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value, self._names)
