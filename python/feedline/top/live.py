# SPDX-License-Identifier: Apache-2.0
"""The view on a terminal: painted anew each interval, on keys, and when the terminal changes its size."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from . import screen
from .watch import View, Watch

TERMINATED = 128 + signal.SIGTERM
_KEYS = "q quit   p pause   tab loader"
_LONGEST_KEY = 16  # bytes: arrows come as three, pasted text is not for us


class _Terminated(Exception):
    """SIGTERM: the terminal must be left as it was found."""


def run(watch: Watch, interval_s: float, console: Console) -> int:
    """Until q or Ctrl-C; returns the exit status. What was seen last of a run that ended stays on the terminal."""
    state = _State(watch.look())
    try:
        with (
            _keys() as keys,
            _signals() as woken,
            Live(
                console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
            ) as live,
        ):
            _loop(watch, interval_s, console, live, state, keys, woken)
        status = 0
    except KeyboardInterrupt:
        status = 130
    except _Terminated:
        status = TERMINATED
    if state.view.ended:
        for line in screen.lines(state.view, console.width, None, state.selected):
            console.print(line)
    return status


class _State:
    def __init__(self, view: View) -> None:
        self.view, self.selected, self.paused = view, 0, False


def _loop(
    watch: Watch, interval_s: float, console: Console, live: Live, state: _State, keys: int | None, woken: int
) -> None:
    due_s = time.monotonic() + interval_s
    waiting = [woken] if keys is None else [woken, keys]
    while True:
        live.update(_painted(state, console, keys is not None), refresh=True)
        ready, _, _ = select.select(waiting, [], [], max(due_s - time.monotonic(), 0))
        if woken in ready:
            os.read(woken, 64)
        if keys in ready and not _take_key(keys or 0, state):
            return
        if time.monotonic() >= due_s:
            if not state.paused:
                state.view = watch.look()
            due_s = time.monotonic() + interval_s


def _painted(state: _State, console: Console, has_keys: bool) -> Group:
    width, height = console.size
    lines = screen.lines(state.view, width, max(height - 1, 1), state.selected, state.paused)
    lines += [Text()] * (height - 1 - len(lines))
    foot = Text(_KEYS if has_keys else "Ctrl-C ends", style="dim", no_wrap=True)
    foot.truncate(width)
    return Group(*lines, foot)


def _take_key(keys: int, state: _State) -> bool:
    """Whether to go on."""
    pressed = os.read(keys, _LONGEST_KEY)
    if not pressed or pressed in (b"q", b"Q", b"\x04"):  # nothing: the terminal is gone
        return False
    if pressed in (b"p", b" "):
        state.paused = not state.paused
    elif pressed in (b"\t", b"\x1b[B", b"\x1b[C", b"\x1bOB", b"\x1bOC"):
        state.selected += 1
    elif pressed in (b"\x1b[Z", b"\x1b[A", b"\x1b[D", b"\x1bOA", b"\x1bOD"):
        state.selected -= 1
    return True


@contextlib.contextmanager
def _keys() -> Iterator[int | None]:
    """Where single keys can be read, not echoed; None without a terminal, or in a shell's background."""
    descriptor = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
    if descriptor is None or os.tcgetpgrp(descriptor) != os.getpgrp():
        yield None
        return
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _signals() -> Iterator[int]:
    """A descriptor that is readable when the terminal has another size; SIGTERM becomes an exception."""
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = {number: signal.getsignal(number) for number in (signal.SIGWINCH, signal.SIGTERM)}
    descriptor = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGWINCH, lambda number, frame: None)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield woken
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(woken)
        os.close(wakes)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated
