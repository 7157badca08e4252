# SPDX-License-Identifier: Apache-2.0
"""HTML tables for datasets, loaders and statistics in notebooks.

Uses only inline styles and the colours of the notebook's theme, because a notebook's output cannot include Feedline's
style sheet.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_TABLE = '<table style="text-align:left;border-collapse:collapse">'
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"
_NUMBER = "text-align:right;padding:2px 0 2px 12px;font-variant-numeric:tabular-nums"


def section(title: str, *parts: str) -> str:
    """Returns an HTML block with a title above `parts`, which are HTML as well."""
    return f'<div style="max-width:60em"><strong>{html.escape(title)}</strong>{"".join(parts)}</div>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Returns a table of names and values, with one row per pair. Line breaks in values are preserved."""
    return f"{_TABLE}{''.join(f'<tr>{_cell(name)}{_cell(value)}</tr>' for name, value in rows)}</table>"


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table with a header row. The first column contains text, the others numbers."""
    head = "".join(f'<th style="{_style(column)}">{html.escape(name)}</th>' for column, name in enumerate(heads))
    body = "".join(
        f"<tr>{''.join(_cell(value, _style(column)) for column, value in enumerate(row))}</tr>" for row in rows
    )
    return f"{_TABLE}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def folded(title: str, text: str) -> str:
    """Returns preformatted text that is hidden until the user clicks its title."""
    return f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def _style(column: int) -> str:
    return _NUMBER if column else _CELL


def _cell(value: str, style: str = _CELL) -> str:
    return f'<td style="{style}">{html.escape(value).replace(chr(10), "<br>")}</td>'
