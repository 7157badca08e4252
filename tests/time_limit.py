# SPDX-License-Identifier: Apache-2.0
"""A time limit for each test, enforced by a separate process.

If a test exceeds its limit, the stacks of all threads are written to stderr and its pytest process is killed. This also
works for hangs that a thread of the same process cannot end: C code that holds the GIL, or blocked exit handlers. Child
processes of pytest are killed, too: a survivor would keep the pipes of xdist and tools/test open, and their readers
would wait for ever. pytest-timeout does neither.

    pytest   --- pipe: "SECONDS NAME" when a test begins, "" when it has ended --->   this file as a program
             <-- STACKS_SIGNAL, after the limit; then SIGKILL to all descendants ---
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

STACKS_SIGNAL = signal.SIGRTMAX - 4  # a real-time signal that no other part of the tests uses
_STACKS_S = 2.0  # for writing the stacks; then the process is killed


class Watch:
    """The side of the pytest process, with the same lifetime."""

    def __init__(self, stderr: int) -> None:
        # chain: after the stacks, the signal's default action ends the process
        faulthandler.register(STACKS_SIGNAL, file=stderr, all_threads=True, chain=True)
        command = [sys.executable, "-S", __file__, str(os.getpid())]
        # its own session: pytest handles Ctrl-C
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
        )

    def begin(self, name: str, seconds: float) -> None:
        self._send(f"{seconds} {name}")

    def end(self) -> None:
        self._send("")

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the watch has ended: tests continue without limits
            self._process.stdin.write(line.replace("\n", " ").encode() + b"\n")
            self._process.stdin.flush()


def _parents() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # PID (NAME) STATE PARENT ...: the name may contain any character
            found[int(folder.name)] = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return found


def descendants(process: int) -> list[int]:
    """The descendants of a process, without this one."""
    parents = _parents()
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return [one for one in found[1:] if one != os.getpid()]


def _end(process: int, name: str, seconds: float) -> None:
    text = f"\n{name} exceeded its limit of {seconds:g} s: stacks of process {process}, which is killed now\n"
    os.write(2, text.encode())
    found = set(descendants(process))
    _send(signal.SIGSTOP, found)  # before the test ends by the next signal and its children get another parent
    _send(STACKS_SIGNAL, {process})
    time.sleep(_STACKS_S)
    _send(signal.SIGSTOP, {process})  # so that it starts no process after the next listing
    _send(signal.SIGKILL, {process, *found, *descendants(process)})


def _send(number: signal.Signals | int, processes: set[int]) -> None:
    for one in processes:
        with contextlib.suppress(OSError):
            os.kill(one, number)


def main(process: int) -> None:
    name, limit, deadline, received = "", 0.0, None, b""
    while os.getppid() == process:
        wait = 1.0 if deadline is None else min(1.0, max(0.0, deadline - time.monotonic()))
        if select.select([0], [], [], wait)[0]:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, received = (received + data).split(b"\n")
            for line in lines:
                seconds, _, name = line.decode().partition(" ")
                limit = float(seconds or 0)
                deadline = time.monotonic() + limit if seconds else None
        elif deadline is not None and time.monotonic() >= deadline:
            _end(process, name, limit)
            return


if __name__ == "__main__":
    main(int(sys.argv[1]))
