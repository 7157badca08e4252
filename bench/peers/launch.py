# SPDX-License-Identifier: Apache-2.0
"""Runs a measurement as a separate process, limits its memory and time, and ends all processes that it leaves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import processes

_HERE = Path(__file__).resolve().parent
_LAST_WORDS = 300


class Skipped(Exception):
    """There is no figure; the message states the reason."""


def _end(process: subprocess.Popen[str]) -> None:
    """Ends the process and all other processes in its group, such as workers that outlive their parent."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][-_LAST_WORDS:] if lines else "no message"


def _read(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    """Returns the next line of JSON; None if the process has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    while line and not line.startswith("{"):  # other output of a peer
        line = process.stdout.readline()
    try:
        printed = dict(json.loads(line))
    except ValueError:  # no output, or a line truncated when the process was killed
        return None
    if "unavailable" in printed:
        raise Skipped(printed["unavailable"])
    return printed


def _watched(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    """Returns the figures that the process prints, and the memory peaks between its first two lines.

    These are the peaks of the tree's memory and of its PSS, both minus that of the bare interpreter, and `peak_pss`,
    the PSS including the interpreter.
    """
    bare = _read(process)
    if bare is None:
        return None
    with processes.PeakPss(process.pid) as sampled:
        _read(process)  # warm
    figures = _read(process)
    if figures is None:
        return None
    above = {
        "peak_bytes_above_bare": sampled.peak_bytes - bare["bare_bytes"],
        "peak_pss_above_bare": sampled.peak_pss_bytes - bare["bare_bytes"],
        "peak_pss": sampled.peak_pss_bytes,
    }
    return {**figures, **above}


def run(
    python: Path | str,
    adapter: str,
    work: str,
    *,
    log: Path,
    timeout_s: float,
    sheet: Path | None = None,
    program: Path = _HERE / "child.py",
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Runs `adapter` with `work`, a Work in JSON, and `variables` in its environment; returns its output.

    Raises Skipped if it is unavailable, fails or takes too long.
    """
    command = [str(python), str(program), adapter, work, *([str(sheet)] if sheet else [])]
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **(variables or {})}
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True, env=environment
        )
    late = threading.Event()

    def stop() -> None:
        late.set()
        _end(process)

    watchdog = threading.Timer(timeout_s, stop)
    watchdog.start()
    try:
        figures = _watched(process)
    finally:
        watchdog.cancel()
        _end(process)
    if late.is_set():
        raise Skipped(f"stopped after {timeout_s:.0f} s; see {log}")
    if figures is None:
        raise Skipped(f"failed: {_last_words(log)} (see {log})")
    return figures
