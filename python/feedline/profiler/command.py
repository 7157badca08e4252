# SPDX-License-Identifier: Apache-2.0
"""The profiled command: its environment with the probe, its start, its sampler, and its signals."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedline import _engine
from feedline.profiler.probe.events import LOOPS
from feedline.profiler.variables import EXTENSION, SESSION

_PACKAGE = Path(__file__).resolve().parents[1]
_PERIOD_S = 0.1
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class CommandError(OSError):
    """The command could not be started."""


def environment_of(folder: Path, extension: str = "") -> dict[str, str]:
    """Returns this process's environment with variables that make the probe record into `folder`.

    `extension`: name of a module whose ``install(module, recorder)`` the probe calls; "" for no extension.
    """
    environment = dict(os.environ)
    paths = [str(_PACKAGE / "profiler" / "probe" / "inject")]
    if environment.get("PYTHONPATH"):
        paths.append(environment["PYTHONPATH"])
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment[SESSION] = str(folder)
    environment.pop(EXTENSION, None)  # from an outer Feedline command
    if extension:
        environment[EXTENSION] = extension
    return environment


def start(command: Sequence[str], environment: dict[str, str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts the command with Popen's `options`. Raises CommandError on failure."""
    try:
        return subprocess.Popen(list(command), env=environment, **options)
    except OSError as error:
        raise CommandError(error.errno, f"cannot start {command[0]}: {error.strerror}") from error


def other_interpreter(command: Sequence[str]) -> str:
    """Returns a warning if the command runs a different environment's Python; "" otherwise."""
    found = shutil.which(command[0]) if command else None
    if found is None or not os.path.basename(found).startswith("python"):
        return ""
    own, theirs = (os.path.realpath(os.path.dirname(path)) for path in (sys.executable, found))
    if own == theirs:
        return ""
    return (
        f"`{command[0]}` is {found}, whose packages differ from those of {sys.executable}, where Feedline is "
        "installed: "
        "activate that environment, or start the command with the path of its Python"
    )


def sampler_of(pid: int, folder: Path | None = None) -> _engine.HostSampler | None:
    """Returns a sampler of the host and the process tree; None if sampling is impossible.

    `folder`: the session's folder; the full sampling rate is used only from the command's first loop on.
    """
    closely_from = "" if folder is None else str(folder / LOOPS)
    try:
        return _engine.HostSampler(pid, _PERIOD_S, closely_from=closely_from)
    except Exception:
        return None


@dataclass
class Forwarding:
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    interrupted: bool = False


@contextlib.contextmanager
def signals_of_child() -> Iterator[Forwarding]:
    """Forwards signals to the script, except a terminal's Ctrl-C, which reaches it directly."""
    forwarding = Forwarding()

    def forward(number: int, _frame: Any) -> None:
        forwarding.interrupted |= number == signal.SIGINT
        for child in forwarding.children:
            with contextlib.suppress(OSError):
                child.send_signal(number)

    def reached_by_terminal(_number: int, _frame: Any) -> None:
        forwarding.interrupted = True

    if threading.current_thread() is not threading.main_thread():
        yield forwarding
        return
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    # a handler of ours, unlike SIG_IGN, is not inherited by the child
    by_terminal = _has_terminal()
    before[signal.SIGINT] = signal.signal(signal.SIGINT, reached_by_terminal if by_terminal else forward)
    try:
        yield forwarding
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
