# SPDX-License-Identifier: Apache-2.0
"""Short descriptions of the fields in batches and samples, for terminals and notebooks."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

from .unopened import UnopenedColumn, listed

_MOST_VALUES = 8  # a vector of at most this many numbers is shown with its values


def short(value: Any) -> str:
    """Describes a value in one line: the type and shape of an array, the length of a list, or the value itself."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return " ".join(_parts(value, shape))
    if isinstance(value, list):
        return f"list of {len(value)}" + (f": {short(value[0])}, ..." if value else "")
    return reprlib.repr(value)


def _parts(value: Any, shape: tuple[int, ...]) -> list[str]:
    parts = [f"{str(value.dtype).removeprefix('torch.')} {tuple(shape)}"]
    device = str(getattr(value, "device", "cpu"))
    if device != "cpu":
        parts.append(f"on {device}")
    elif len(shape) == 1 and shape[0] <= _MOST_VALUES and hasattr(value, "tolist"):
        parts.append(f"{value.tolist()}")
    return parts


def text(title: str, names: Sequence[str], values: Sequence[Any], unopened: tuple[UnopenedColumn, ...]) -> str:
    """Returns the text for a named tuple: a short description of each field, and the columns that were not opened."""
    fields = ", ".join(f"{name}={short(value)}" for name, value in zip(names, values, strict=True))
    left = f"; not opened: {listed(unopened)}" if unopened else ""
    return f"{title}({fields}{left})"


def html(title: str, names: Sequence[str], values: Sequence[Any], unopened: tuple[UnopenedColumn, ...]) -> str:
    """Returns the same descriptions as an HTML table for notebooks."""
    from . import html_table  # imports html, which only notebooks need

    rows = [(name, short(value)) for name, value in zip(names, values, strict=True)]
    if unopened:
        rows.append(("not opened", listed(unopened)))
    return html_table.section(title, html_table.facts(rows))
