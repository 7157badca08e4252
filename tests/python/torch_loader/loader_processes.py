# SPDX-License-Identifier: Apache-2.0
"""Processes in the drop-in's tests: scripts of their own, who is alive, waiting for what must happen.

Nothing here measures time. A limit only turns a hang into a failure, so it may be far above what anything takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import feedline

HERE = Path(__file__).parent
HANG_S = 300


def script_command(text: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Returns the command and environment of a script that can import this folder, its parent, and this package."""
    paths = [str(Path(feedline.__file__).parent.parent), str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return [sys.executable, "-W", "ignore", "-c", textwrap.dedent(text), *arguments], environment


def run_script(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command, environment = script_command(text, *arguments)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], Any], what: str | Callable[[], str] = "") -> None:
    """Returns when `condition` is true; fails if this takes so long that only a hang is possible.

    `what`: describes the condition, or is called for the description.
    """
    deadline = time.monotonic() + HANG_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"it never came to this: {(what() if callable(what) else what) or condition}")
        time.sleep(0.005)


def settled(value: Callable[[], Any]) -> Any:
    """Returns `value()` once it has stayed the same for a while."""
    last, since = value(), time.monotonic()
    while time.monotonic() < since + 0.3:
        time.sleep(0.01)
        if value() != last:
            last, since = value(), time.monotonic()
    return last
