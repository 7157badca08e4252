# SPDX-License-Identifier: Apache-2.0
"""Memory: of the watched tree without counting twice what its processes share, and how near the limits are."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PERIOD_S = 5.0  # the kernel walks page tables for it, holding a lock that the process's own mmap() waits for,
_COST_SHARE = 0.01  # so it is asked less often where the answer takes long
_UNLIMITED = 1 << 60  # version 1 of cgroups says "no limit" by a number near 2^63


@dataclass(frozen=True)
class Memory:
    """Bytes. None: not told."""

    pss_bytes: int | None  # of the tree: pages that n processes share count 1/n in each
    swapped_bytes: int | None  # of the tree
    limit_bytes: int | None  # of the cgroup, the tightest around the process
    used_bytes: int | None  # of that limit, without page cache that gives way
    shared_bytes: int | None  # in /dev/shm, by anybody
    shared_limit_bytes: int | None
    notes: tuple[str, ...]


class MemoryWatch:
    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self._root = root
        self._groups = _memory_groups(root, pid)
        self._due_s = 0.0
        self._pss: tuple[int | None, int | None, tuple[str, ...]] = (None, None, ())

    def look(self, pids: Iterable[int]) -> Memory:
        began = time.monotonic()
        if began >= self._due_s:
            self._pss = self._sum(pids)
            ended = time.monotonic()
            self._due_s = ended + max(_PERIOD_S, (ended - began) / _COST_SHARE)
        limit, used = _tightest(self._groups)
        shared, shared_limit = self._shared()
        return Memory(self._pss[0], self._pss[1], limit, used, shared, shared_limit, self._pss[2])

    def _sum(self, pids: Iterable[int]) -> tuple[int | None, int | None, tuple[str, ...]]:
        pss = swap = read = 0
        refused = []
        for pid in pids:
            try:
                text = (self._root / f"proc/{pid}/smaps_rollup").read_text()
            except PermissionError:
                refused.append(pid)
                continue
            except OSError:  # it has ended
                continue
            found = {name: int(kib) << 10 for name, kib in re.findall(r"^(Pss|SwapPss):\s+(\d+) kB$", text, re.M)}
            pss, swap, read = pss + found.get("Pss", 0), swap + found.get("SwapPss", 0), read + 1
        named = ", ".join(map(str, refused[:3])) + (" ..." if len(refused) > 3 else "")
        notes = (f"memory of process {named} may not be read by this user",) if refused else ()
        return (pss, swap, notes) if read and not refused else (None, None, notes)

    def _shared(self) -> tuple[int | None, int | None]:
        try:
            status = os.statvfs(self._root / "dev/shm")
        except OSError:
            return None, None
        return (status.f_blocks - status.f_bfree) * status.f_frsize, status.f_blocks * status.f_frsize


def _memory_groups(root: Path, pid: int) -> list[Path]:
    """Folders of the cgroup of a process and of those around it. In a container only the mount's top may be there."""
    try:
        lines = (root / f"proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names and "memory" not in names.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("memory" if names else "")
        parts = [part for part in path.split("/") if part and part != ".."]
        found += [top.joinpath(*parts[:i]) for i in range(len(parts), -1, -1)]
    return found


def _tightest(groups: Iterable[Path]) -> tuple[int | None, int | None]:
    """(limit, used) of the group with the least left; (None, None) where nothing is limited."""
    found = []
    for group in groups:
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, used = _number(group / limit_name), _number(group / used_name)
            if limit is not None and used is not None and limit < _UNLIMITED:
                found.append((limit, max(used - _inactive(group), 0)))
    return min(found, key=lambda pair: pair[0] - pair[1]) if found else (None, None)


def _inactive(group: Path) -> int:
    try:
        match = re.search(r"^(?:total_)?inactive_file (\d+)$", (group / "memory.stat").read_text(), re.M)
    except OSError:
        return 0
    return int(match[1]) if match else 0


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # ValueError: "max"
        return None
