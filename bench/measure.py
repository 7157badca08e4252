# SPDX-License-Identifier: Apache-2.0
"""Measures one loader in a fresh process, and describes the machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import processes

_HERE = Path(__file__).resolve().parent


def measure(program: str, *what: str, **options: Any) -> dict[str, Any]:
    """Returns the figures that `program WHAT...` in this folder prints, and its memory peaks.

    `peak_bytes_above_bare` is the peak memory of the process tree between the program's first two lines (PSS, and
    shared memory that no process maps), minus that of the interpreter with everything imported; `peak_pss_above_bare`
    is only the PSS. `peak_own_above_bare` excludes pages of files, and is returned if the program prints the bytes to
    subtract. Memory is not sampled during timed epochs, as this would slow down loaders with many processes most.
    """
    arguments = [str(part) for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    command = [sys.executable, str(_HERE / program), *what, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()  # bare
    with processes.PeakPss(process.pid) as sampled:
        process.stdout.readline()  # warm
    printed = process.stdout.read()
    if process.wait() != 0:
        raise RuntimeError(f"{' '.join(command)} ended with exit status {process.returncode}")
    result: dict[str, Any] = json.loads(printed)
    result["peak_bytes_above_bare"] = sampled.peak_bytes - result["bare_bytes"]
    result["peak_pss_above_bare"] = sampled.peak_pss_bytes - result["bare_bytes"]
    if "bare_own_bytes" in result:
        result["peak_own_above_bare"] = sampled.peak_own_bytes - result["bare_own_bytes"]
    return result


def machine() -> dict[str, Any]:
    """Returns everything that affects a figure except for the code."""
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    versions = {}
    for name in ("feedline", "torch", "torchvision", "pillow", "numpy"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "cpu": cpu,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": versions,
    }


def commit() -> str:
    """Returns the checkout's commit, with ``+`` if files differ from it; empty outside a checkout."""
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=_HERE, capture_output=True, text=True, check=True
        )
        changed = subprocess.run(
            ["git", "status", "--porcelain", "-uno"], cwd=_HERE, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
