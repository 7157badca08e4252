# SPDX-License-Identifier: Apache-2.0
"""The terminal view, which is redrawn at every interval, on key presses, and when the terminal is resized."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from types import FrameType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from . import screen
from .watch import View, Watch

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
_KEYS = "q quit   p pause   tab loader"
_LONGEST_KEY = 16  # bytes: an arrow key arrives as three, and pasted text is ignored
_NEXT = (b"\t", b"\x1b[B", b"\x1b[C", b"\x1bOB", b"\x1bOC")  # tab, down, right
_PREVIOUS = (b"\x1b[Z", b"\x1b[A", b"\x1b[D", b"\x1bOA", b"\x1bOD")  # shift tab, up, left


class _Terminated(Exception):
    """Raised on SIGTERM, so that the terminal is restored."""


def run(watch: Watch, interval_s: float, console: Console) -> int:
    """Runs until q or Ctrl-C is pressed and returns the exit status. The last view of a run that has ended remains on
    the terminal.
    """
    shown = None
    try:
        with _signals() as signals:
            shown = _Shown(watch.look())
            with _Keys() as keys, _live(console) as live:
                _loop(watch, interval_s, console, live, shown, keys, signals)
        status = 0
    except KeyboardInterrupt:
        status = INTERRUPTED
    except _Terminated:
        status = TERMINATED
    if shown is not None and shown.view.ended:
        for line in screen.lines(shown.view, console.width, None, shown.selected):
            console.print(line)
    return status


class _Shown:
    def __init__(self, view: View) -> None:
        self.view, self.selected, self.paused = view, 0, False


class _Signals:
    """`woken` becomes readable on a signal; `suspended` is set if Ctrl-Z must be handled."""

    def __init__(self, woken: int) -> None:
        self.woken, self.suspended = woken, False

    def suspend(self, number: int, frame: FrameType | None) -> None:
        self.suspended = True


class _Keys:
    """Reads single keys without echo. `descriptor` is None without a terminal or in a background job."""

    def __init__(self) -> None:
        self.descriptor = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        if self.descriptor is not None and os.tcgetpgrp(self.descriptor) != os.getpgrp():
            self.descriptor = None
        self._before: list[Any] | None = None

    def __enter__(self) -> _Keys:
        if self.descriptor is not None:
            self._before = termios.tcgetattr(self.descriptor)
            tty.setcbreak(self.descriptor)
        return self

    def __exit__(self, *error: object) -> None:
        if self.descriptor is not None and self._before is not None:
            with contextlib.suppress(termios.error):  # the terminal was closed
                termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._before)


def _live(console: Console) -> Live:
    return Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)


def _loop(
    watch: Watch, interval_s: float, console: Console, live: Live, shown: _Shown, keys: _Keys, signals: _Signals
) -> None:
    due_s = time.monotonic() + interval_s
    waiting = [signals.woken] if keys.descriptor is None else [signals.woken, keys.descriptor]
    while True:
        live.update(_painted(shown, console, keys.descriptor is not None), refresh=True)
        ready, _, _ = select.select(waiting, [], [], max(due_s - time.monotonic(), 0))
        if signals.woken in ready:
            os.read(signals.woken, 64)
        if signals.suspended:
            signals.suspended = False
            _suspend(live, keys)
        elif keys.descriptor in ready and not _take_key(keys.descriptor or 0, shown):
            return
        if time.monotonic() >= due_s:
            if not shown.paused:
                shown.view = watch.look()
            due_s = time.monotonic() + interval_s


def _suspend(live: Live, keys: _Keys) -> None:
    live.stop()
    keys.__exit__()
    os.kill(os.getpid(), signal.SIGSTOP)
    keys.__enter__()  # resumed in the foreground
    live.start()


def _painted(shown: _Shown, console: Console, has_keys: bool) -> Group:
    width, height = console.size
    lines = screen.lines(shown.view, width, max(height - 1, 1), shown.selected, shown.paused)
    lines += [Text()] * (height - 1 - len(lines))
    foot = Text(_KEYS if has_keys else "Ctrl-C ends", style="dim", no_wrap=True)
    foot.truncate(width)
    return Group(*lines, foot)


def _take_key(descriptor: int, shown: _Shown) -> bool:
    """Returns whether to continue."""
    try:
        pressed = os.read(descriptor, _LONGEST_KEY)
    except OSError:
        return False  # the terminal was closed
    if pressed in (b"", b"q", b"Q", b"\x04"):
        return False
    if pressed in (b"p", b" "):
        shown.paused = not shown.paused
    elif pressed in _NEXT:
        shown.selected += 1
    elif pressed in _PREVIOUS:
        shown.selected -= 1
    return True


@contextlib.contextmanager
def _signals() -> Iterator[_Signals]:
    """Wakes the loop on Ctrl-Z and when the terminal is resized; converts SIGTERM to an exception."""
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    found = _Signals(woken)
    handlers = {signal.SIGWINCH: lambda number, frame: None, signal.SIGTERM: _terminate, signal.SIGTSTP: found.suspend}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    descriptor = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    try:
        yield found
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(woken)
        os.close(wakes)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated
