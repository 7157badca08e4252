# SPDX-License-Identifier: Apache-2.0
"""Formats the command line's output."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from rich.progress import Progress

OUT = Console(highlight=False, soft_wrap=True)
ERR = Console(stderr=True, highlight=False, soft_wrap=True)
_NARROWEST = 40
_NUMBER = re.compile(r"(\[[a-z ]+\])?([-+~<>]?\d|-?$)")  # the start of a cell that contains a number or "-"


def bytes_text(count: float) -> str:
    """Formats bytes as ``12.3 MB``, with decimal units as used for disks and networks."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def counted(number: int, thing: str) -> str:
    """Returns ``1 sample``, ``1,234 samples``."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def print_json(value: Any) -> None:
    """Prints JSON, in colour only on a terminal; FORCE_COLOR, which notebooks set, is ignored if the output is a
    file.
    """
    OUT.print_json(json.dumps(value)) if sys.stdout.isatty() else print(json.dumps(value, indent=2))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """Prints a table: numeric columns are right-aligned, the first column and text columns left-aligned."""
    shown = Table(title=title, title_justify="left", title_style="bold")
    rows = list(rows)
    for i, column in enumerate(columns):
        is_numbers = i > 0 and all(_NUMBER.match(row[i]) for row in rows)
        shown.add_column(column, justify="right" if is_numbers else "left", overflow="ellipsis" if i else "fold")
    for row in rows:
        shown.add_row(*row)
    OUT.print(shown)


def wrapped(line: str, width: int, words_begin: int = 0) -> list[str]:
    """Wraps a line to the terminal's width. Continuation lines are indented to the first word after leading blanks and
    an arrow, or to column `words_begin`.
    """
    indent = re.match(r" *(-> )?", line)
    words = (len(indent[0]) if indent else 0) or words_begin
    made = textwrap.wrap(
        line, max(width, _NARROWEST), subsequent_indent=" " * words, break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return made or [line]


def progress(total: int | None, label: str) -> Progress:
    """Returns a progress bar on stderr, shown only on a terminal; add steps with ``advance(0)``."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
        disable=not ERR.is_terminal,
    )
    bar.add_task(label, total=total)
    return bar


@contextlib.contextmanager
def steps(total: int | None, label: str) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar during the block, which calls the yielded function to advance it."""
    with progress(total, label) as bar:
        yield lambda count: bar.advance(bar.task_ids[0], count)
