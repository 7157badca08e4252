# SPDX-License-Identifier: Apache-2.0
"""How the command line shows things."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

OUT = Console(highlight=False, soft_wrap=True)
ERR = Console(stderr=True, highlight=False, soft_wrap=True)
_NARROWEST = 40
_NUMBER = re.compile(r"(\[[a-z ]+\])?([-+~<>]?\d|-?$)")  # the beginning of a cell that holds a number or "-"


def bytes_text(count: float) -> str:
    """``12.3 MB``: decimal units, as disks and networks have them."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def counted(number: int, thing: str) -> str:
    """``1 sample``, ``1,234 samples``."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def print_json(value: Any) -> None:
    """In colours on a terminal alone: FORCE_COLOR, which notebooks set for every ``!command``, colours no file."""
    OUT.print_json(json.dumps(value)) if sys.stdout.isatty() else print(json.dumps(value, indent=2))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """Prints a table: columns of numbers are right-aligned, the first column and those with words left-aligned."""
    shown = Table(title=title, title_justify="left", title_style="bold")
    rows = list(rows)
    for i, column in enumerate(columns):
        is_numbers = i > 0 and all(_NUMBER.match(row[i]) for row in rows)
        shown.add_column(column, justify="right" if is_numbers else "left", overflow="ellipsis" if i else "fold")
    for row in rows:
        shown.add_row(*row)
    OUT.print(shown)


def wrapped(line: str, width: int, words_begin: int = 0) -> list[str]:
    """A line in lines that fit a terminal, the further ones under where its words begin: behind blanks and an arrow, or
    at column `words_begin` where it has none."""
    indent = re.match(r" *(-> )?", line)
    words = (len(indent[0]) if indent else 0) or words_begin
    made = textwrap.wrap(
        line, max(width, _NARROWEST), subsequent_indent=" " * words, break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return made or [line]


def progress(total: int | None, label: str) -> Progress:
    """A progress bar on stderr, there only on a terminal; add its one task's steps with ``advance(0)``."""
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
    """A progress bar while the block runs; what it gives moves the bar on by so many."""
    with progress(total, label) as bar:
        yield lambda count: bar.advance(bar.task_ids[0], count)
