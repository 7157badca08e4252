# SPDX-License-Identifier: Apache-2.0
"""Columns of a source that no field of the dataset reads."""

from __future__ import annotations

from typing import NamedTuple

from .. import _engine

_SHOWN = 8  # maximum number of columns in a line


class UnopenedColumn(NamedTuple):
    """A column, member, feature or key of a source that no field reads.

    Attributes:
        name: the column's name in the source.
        holds: the column's type, such as ``"text"`` or ``"list of float32"``; ``""`` if it is unknown.
        reason: why the column was not opened.
        spec: the value in ``fields=`` that opens the column; ``""`` if it cannot be opened.
    """

    name: str
    holds: str
    reason: str
    spec: str


def columns_of(engine: _engine.Dataset) -> tuple[UnopenedColumn, ...]:
    """Returns the unopened columns of a dataset, in the source's order."""
    return tuple(UnopenedColumn(*row) for row in engine.unopened)


def listed(columns: tuple[UnopenedColumn, ...]) -> str:
    """Lists the first few columns, as in ``"caption (text), meta (map)"``."""
    shown = [f"{one.name} ({one.holds})" if one.holds else one.name for one in columns[:_SHOWN]]
    more = len(columns) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def explained(column: UnopenedColumn) -> str:
    """Explains why batches do not have the column, and how to open it."""
    holds = f" ({column.holds})" if column.holds else ""
    text = f"the column {column.name!r}{holds} exists but was not opened: {column.reason}"
    return f'{text}. Open it with fields=(..., "{column.spec}")' if column.spec else text
