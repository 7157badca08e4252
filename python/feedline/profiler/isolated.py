# SPDX-License-Identifier: Apache-2.0
"""Runs an experiment in a separate process with a time limit, so that a failure ends only that process.

The copy of a script's process has none of the script's threads, and must not use a GPU that the script has used: torch
raises an error, and drivers of other libraries hang or end the process. Reading samples rarely uses the GPU, but this
cannot be ruled out.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

_POLL_S = 0.01
_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_OF_A_DEVICE = ("in forked subprocess", "CUDA error", "HIP error", "CUDA_ERROR")


class NotTried(Exception):
    """An experiment that is impossible in this process; str() returns the reason."""


def make(attempt: Callable[[], dict[str, Any]], limit_s: float, result: Path) -> dict[str, Any]:
    """Returns the result of `attempt`. Raises NotTried if `attempt` fails, if its process dies, or if it takes longer
    than `limit_s`.

    Call this function only in a process without children, as all remaining children are ended. `result`: path of a file
    for the result.
    """
    result.unlink(missing_ok=True)
    _adopt()
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the script's own handler must not run in this process
    child = os.fork()
    if child > 0:
        status = _wait(child, time.monotonic() + limit_s)
        _end_children()
    if before is not None:
        signal.signal(signal.SIGCHLD, before)  # torch's handler reports a dead worker to the loop at once
    if child == 0:
        _run(attempt, result)
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(result.read_text())
        if "why" in found:
            raise NotTried(found["why"])
        return dict(found)
    if status is None:
        raise NotTried(f"the trial did not finish within {limit_s:.0f} s and was killed")
    if os.WIFSIGNALED(status):
        raise NotTried(f"the trial process was killed by {signal.Signals(os.WTERMSIG(status)).name}")
    raise NotTried(f"the trial process exited with status {os.waitstatus_to_exitcode(status)}")


def _run(attempt: Callable[[], dict[str, Any]], result: Path) -> NoReturn:
    try:
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(1)  # OpenMP's other threads do not exist here, and a parallel loop would never end
        try:
            found = attempt()
        except BaseException as error:
            found = {"why": reason_of(error)}
        unfinished = result.with_name(f"{result.name}.part")
        unfinished.write_text(json.dumps(found))
        unfinished.replace(result)
    finally:
        os._exit(0)


def reason_of(error: BaseException) -> str:
    """Returns the reason why reading samples failed in a copied process, shortened to one line because a worker's error
    includes its whole traceback.
    """
    if isinstance(error, NotTried):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    for line in reversed(lines):  # lines of the code that raised an error precede it
        if any(words in line for words in _OF_A_DEVICE):
            return f"reading samples uses the GPU, which a forked process cannot use: {line}"
    line = lines[-1] if any(line.startswith("Original Traceback") for line in lines) else lines[0]
    return f"{type(error).__name__}: {line}"


def _wait(child: int, until: float) -> int | None:
    """Returns the process's exit status, or None if the process did not end in time."""
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(_POLL_S)
    return None


def _adopt() -> None:
    """Makes this process the parent of orphaned descendants, such as the workers of a dead loader."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_children() -> None:
    """Ends all children of this process and their descendants. Descendants become children of this process when their
    parents die.
    """
    while children := _children():
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(OSError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    own, found = os.getpid(), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == own:
                    found.append(int(name))
    return found
