# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a process and its descendants, from /proc."""

from __future__ import annotations

import glob
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
    return _pss_bytes(pids)[0]


def _pss_bytes(pids: Iterable[int]) -> tuple[int, int]:
    """(all of it, what of it is shared memory), of the same moment."""
    total = shared = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, rest = line.partition(":")
            if name == "Pss":
                total += int(rest.split()[0]) * 1024
            elif name == "Pss_Shmem":
                shared += int(rest.split()[0]) * 1024
    return total, shared


def open_shared_memory_bytes(pids: Iterable[int]) -> int:
    """What the tmpfs and memfd files that `pids` have open take, each file once, mapped or not."""
    files = {}
    for pid in pids:
        for path in glob.iglob(f"/proc/{pid}/fd/*"):
            try:
                if os.readlink(path).startswith(("/dev/shm/", "/memfd:")):
                    found = os.stat(path)
                    files[found.st_dev, found.st_ino] = found.st_blocks * 512
            except OSError:  # closed meanwhile
                continue
    return sum(files.values())


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
    """Samples the memory of a process tree from outside, until it is left.

    `peak_pss_bytes` is the largest sum of PSS. `peak_bytes` is the largest sum of PSS and of the shared memory that no
    process of the tree mapped at that moment, such as batches that wait as open files between two processes: PSS does
    not know them, the kernel and its out-of-memory killer do. A file is known by who has it open, which for both
    loaders is somebody as long as it has not reached the training loop; a torch tensor keeps its file open.
    """

    INTERVAL_S = 0.05

    def __init__(self, root: int) -> None:
        self.peak_pss_bytes = 0
        self.peak_bytes = 0
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def sample(self) -> None:
        pids = tree(self._root)
        pss, mapped = _pss_bytes(pids)
        self.peak_pss_bytes = max(self.peak_pss_bytes, pss)
        self.peak_bytes = max(self.peak_bytes, pss + max(0, open_shared_memory_bytes(pids) - mapped))

    def _run(self) -> None:
        while not self._over.wait(self.INTERVAL_S):
            self.sample()

    def __enter__(self) -> PeakPss:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
