# SPDX-License-Identifier: Apache-2.0
"""Shows what a hanging process is doing: its Python stacks, its threads and, if gdb is installed, their native
stacks.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

_WAIT_S = 10


def of_process(process: subprocess.Popen[bytes], stderr: Path) -> str:
    """Requires: the process has registered SIGUSR1 with faulthandler, which writes to `stderr`."""
    before = stderr.stat().st_size
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + _WAIT_S
    size = -1  # its output comes frame by frame, and is complete when nothing more is added
    while (size <= before or size < stderr.stat().st_size) and process.poll() is None and time.monotonic() < deadline:
        size = stderr.stat().st_size
        time.sleep(0.2)
    said = stderr.read_bytes()[before:].decode(errors="replace")
    return "\n".join(
        [f"process {process.pid}, status {process.poll()}", said, _threads(process.pid), _native(process.pid)]
    )


def _threads(pid: int) -> str:
    lines = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        with suppress(OSError):
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            lines.append(f"thread {task.name} {(task / 'comm').read_text().strip()}: {state}, {_waits(task)}")
    return "\n".join(lines)


def _waits(task: Path) -> str:
    try:
        return (task / "wchan").read_text() or "runs"
    except OSError:
        return "?"


def _native(pid: int) -> str:
    if shutil.which("gdb") is None:
        return "(no gdb, which would show native stacks)"
    command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 30"]
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout
    return "(gdb does not come to an end)"
