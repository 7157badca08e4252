# SPDX-License-Identifier: Apache-2.0
"""Measures the memory of the watched process tree, counting shared pages once, and how far it is from the limits."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import _engine

_PERIOD_S = 5.0  # the kernel walks page tables for this, holding a lock that the process's mmap() waits for,
_COST_SHARE = 0.003  # so it is read less often if reading takes long


@dataclass(frozen=True)
class Memory:
    """Sizes in bytes. None: unknown."""

    pss_bytes: int | None  # of the tree: a page shared by n processes counts 1/n in each
    swapped_bytes: int | None  # of the tree
    limit_bytes: int | None  # of the process's cgroup or the ancestor with the least memory left
    used_bytes: int | None  # of that limit, without reclaimable page cache
    shared_bytes: int | None  # in /dev/shm, by all processes
    shared_limit_bytes: int | None
    notes: tuple[str, ...]


class MemoryWatch:
    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self._root, self._pid = root, pid
        self._due_s = 0.0
        self._pss: tuple[int | None, int | None, tuple[str, ...]] = (None, None, ())

    def look(self, pids: Iterable[int]) -> Memory:
        began = time.monotonic()
        if began >= self._due_s:
            self._pss = self._sum(pids)
            ended = time.monotonic()
            self._due_s = ended + max(_PERIOD_S, (ended - began) / _COST_SHARE)
        host = _engine.memory_limits("" if self._root == Path("/") else str(self._root), self._pid)
        shared, shared_limit = self._shared()
        return Memory(
            self._pss[0], self._pss[1], host.binding_bytes, host.binding_used_bytes, shared, shared_limit, self._pss[2]
        )

    def _sum(self, pids: Iterable[int]) -> tuple[int | None, int | None, tuple[str, ...]]:
        pss = swap = read = 0
        refused = []
        for pid in pids:
            try:
                text = (self._root / f"proc/{pid}/smaps_rollup").read_text()
            except PermissionError:
                refused.append(pid)
                continue
            except OSError:  # the process has ended
                continue
            found = {name: int(kib) << 10 for name, kib in re.findall(r"^(Pss|SwapPss):\s+(\d+) kB$", text, re.M)}
            pss, swap, read = pss + found.get("Pss", 0), swap + found.get("SwapPss", 0), read + 1
        named = ", ".join(map(str, refused[:3])) + (" ..." if len(refused) > 3 else "")
        notes = (f"this user is not permitted to read the memory of process {named}",) if refused else ()
        return (pss, swap, notes) if read and not refused else (None, None, notes)

    def _shared(self) -> tuple[int | None, int | None]:
        try:
            status = os.statvfs(self._root / "dev/shm")
        except OSError:
            return None, None
        return (status.f_blocks - status.f_bfree) * status.f_frsize, status.f_blocks * status.f_frsize
