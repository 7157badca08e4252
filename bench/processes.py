# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a process and its descendants, from /proc."""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """Returns `root` and its current descendants."""
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except OSError:  # the process has ended
            continue
    return found


class Pss(NamedTuple):
    """Proportional set size, in bytes: private pages, and each shared page divided by the processes that map it."""

    total: int
    shared: int  # part of it: pages of tmpfs and memfd files
    file: int  # part of it: pages of other files, such as libraries, which processes outside the tree may also map


def pss_bytes(pids: Iterable[int]) -> Pss:
    sizes = {"Pss": 0, "Pss_Shmem": 0, "Pss_File": 0}
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, rest = line.partition(":")
            if name in sizes:
                sizes[name] += int(rest.split()[0]) * 1024
    return Pss(*sizes.values())


def open_shared_memory_bytes(pids: Iterable[int]) -> int:
    """Returns the memory of the tmpfs and memfd files that `pids` have open, each file once, mapped or not."""
    files = {}
    for pid in pids:
        for path in glob.iglob(f"/proc/{pid}/fd/*"):
            try:
                if os.readlink(path).startswith(("/dev/shm/", "/memfd:")):
                    found = os.stat(path)
                    files[found.st_dev, found.st_ino] = found.st_blocks * 512
            except OSError:  # closed in the meantime
                continue
    return sum(files.values())


def cpu_s(pids: Iterable[int], *, reaped: bool = False) -> float:
    """Returns the user and system time of live processes; `reaped` includes ended children that were waited for."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11 : 15 if reaped else 13]))
    return total / _TICKS


class PeakPss:
    """Samples the memory of a process tree from outside, until the context is left.

    `peak_pss_bytes` is the largest sum of PSS. `peak_bytes` is the largest sum of PSS and of the shared memory that no
    process of the tree mapped at that moment, such as batches in transit between two processes: PSS does not include
    them, but the kernel and its out-of-memory killer count them. These files are found through processes that have them
    open; for both loaders, a file is open until its batch reaches the training loop, and torch tensors keep it open.
    `peak_own_bytes` excludes pages of files, because their share depends on other processes on the machine that run
    torch.
    """

    INTERVAL_S = 0.05

    def __init__(self, root: int) -> None:
        self.peak_pss_bytes = 0
        self.peak_bytes = 0
        self.peak_own_bytes = 0
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def sample(self) -> None:
        pids = tree(self._root)
        pss = pss_bytes(pids)
        held = pss.total + max(0, open_shared_memory_bytes(pids) - pss.shared)
        self.peak_pss_bytes = max(self.peak_pss_bytes, pss.total)
        self.peak_bytes = max(self.peak_bytes, held)
        self.peak_own_bytes = max(self.peak_own_bytes, held - pss.file)

    def _run(self) -> None:
        while not self._over.wait(self.INTERVAL_S):
            self.sample()

    def __enter__(self) -> PeakPss:
        self.sample()  # includes work that ends before the first interval
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
