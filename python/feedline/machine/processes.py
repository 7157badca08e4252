# SPDX-License-Identifier: Apache-2.0
"""Identifies processes from /proc, and detects reused process ids."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError

_TICKS = os.sysconf("SC_CLK_TCK")
_LONGEST_TEXT = 200


@dataclass(frozen=True)
class Identity:
    """A process. The start time distinguishes a process from a later one with the same id."""

    pid: int
    parent: int
    user: int
    began_ticks: int  # since boot
    command: str

    def alive(self, root: Path = Path("/")) -> bool:
        found = _stat(root, self.pid)
        return found is not None and found[1] == self.began_ticks and found[2] not in ("Z", "X")

    def age_s(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.began_ticks / _TICKS


def identify(pid: int, root: Path = Path("/")) -> Identity:
    """Raises ConfigError if the process does not exist."""
    found = _stat(root, pid)
    if found is None or found[2] in ("Z", "X"):
        raise ConfigError(f"top: process {pid} does not exist; omit the number to watch your newest run")
    return Identity(pid, found[0], found[3], found[1], _command(root, pid))


def state_of(pid: int, root: Path = Path("/")) -> str:
    """Returns the state of a process as in ps, such as "R" or "S"; "?" if it has ended or is hidden."""
    found = _stat(root, pid)
    return "?" if found is None else found[2]


def command_of(pid: int, root: Path = Path("/")) -> str:
    """Returns the command line of a process, shortened and printable."""
    return _command(root, pid)


def _stat(root: Path, pid: int) -> tuple[int, int, str, int] | None:
    """Returns (parent, start, state, user) of a process, or None."""
    path = root / f"proc/{pid}/stat"
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = path.read_text(errors="replace")
        words = text[text.rindex(")") + 2 :].split()  # a name may contain spaces and parentheses
        return int(words[1]), int(words[19]), words[0], path.stat().st_uid
    return None


def _command(root: Path, pid: int) -> str:
    with contextlib.suppress(OSError):
        words = (root / f"proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        text = clean(" ".join(_short(word.decode(errors="replace")) for word in words))
        if text:
            return text
    return f"process {pid}"


def _short(word: str) -> str:
    """Returns the last component of a path, for display in a command line."""
    return os.path.basename(word) if word.startswith("/") and os.path.basename(word) else word


def clean(text: Any) -> str:
    """Shortens external text to one printable line for a terminal."""
    shown = "".join(c if c.isprintable() else "?" for c in str(text)[: _LONGEST_TEXT + 1])
    return shown if len(shown) <= _LONGEST_TEXT else shown[: _LONGEST_TEXT - 3] + "..."
