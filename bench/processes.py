# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a process and its descendants, from /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """`root` and its descendants, as they are now."""
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except OSError:  # it has ended meanwhile
            continue
    return found


def pss_bytes(pids: Iterable[int]) -> int:
    """Proportional set size: private pages, and each shared page divided by the processes that map it."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def cpu_s(pids: Iterable[int]) -> float:
    """User and system time of live processes, dead children that were waited for not included."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


class PeakPss:
    """Samples the memory of a process tree from outside, until it is left; `peak_bytes` is the largest sample."""

    INTERVAL_S = 0.05

    def __init__(self, root: int) -> None:
        self.peak_bytes = 0
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._over.wait(self.INTERVAL_S):
            self.peak_bytes = max(self.peak_bytes, pss_bytes(tree(self._root)))

    def __enter__(self) -> PeakPss:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
