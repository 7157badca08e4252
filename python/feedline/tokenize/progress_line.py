# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of long work in one line on standard error."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

_FIRST_S = 1.0  # shorter work shows nothing
_TERMINAL_S, _LOG_S = 0.2, 30.0  # between lines


class ProgressLine:
    """Shows how much work is done: in a terminal as one changing line, otherwise as a line every 30 seconds.

    Args:
        work: the work, such as "tokenizing chats.jsonl".
        unit: the counted items, in the plural.
        total: the amount of work; 0: unknown.
    """

    def __init__(self, work: str, unit: str = "", total: int = 0) -> None:
        self._work, self._unit, self._total = work, unit, total
        self._done = 0
        self._began = time.monotonic()
        self._next = self._began + _FIRST_S
        self._shown = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown and _is_terminal():
            _write("\n")
            self._shown = False

    def add(self, count: int) -> None:
        """Counts finished work."""
        with self._lock:
            self._done += count
        self.show()

    def show(self) -> None:
        """Shows the line, if it is time."""
        now = time.monotonic()
        with self._lock:
            if now < self._next:
                return
            self._next = now + (_TERMINAL_S if _is_terminal() else _LOG_S)
            self._shown = True
            line = f"feedline: {self._work}"
            if self._total:
                rate = self._done / (now - self._began)
                left = f", {(self._total - self._done) / rate:,.0f} s left" if self._done else ""
                line += f": {self._done:,} of {self._total:,} {self._unit}, {rate:,.0f}/s{left}"
            _write(f"\r{line}\x1b[K" if _is_terminal() else f"{line}\n")

    def end(self, result: str) -> None:
        """Shows the result in place of the progress, if that was shown."""
        if self._shown:
            seconds = time.monotonic() - self._began
            line = f"feedline: {self._work}: {result} ({seconds:,.0f} s)"
            _write(f"\r{line}\x1b[K" if _is_terminal() else f"{line}\n")


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _write(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
