# SPDX-License-Identifier: Apache-2.0
"""Measures how busy block devices are. "Busy" means that a request was in flight; a device that serves many requests
concurrently can be busy without being near its limit. Pressure metrics show whether processes wait.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from dataclasses import dataclass
from pathlib import Path

_LAYERS = ("loop", "ram", "zram", "dm-", "md")  # their traffic is counted again at the devices below them


@dataclass(frozen=True)
class Disk:
    """Activity of a whole device since the previous sample."""

    name: str
    busy_share: float
    in_flight: float  # requests in flight, on average


class DiskWatch:
    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._time_s = time.monotonic()
        self._before = self._read()

    def look(self) -> tuple[Disk, ...]:
        """Returns the devices, busiest first; empty if the system does not report device activity."""
        now_s, now = time.monotonic(), self._read()
        over_ms = (now_s - self._time_s) * 1000
        found = []
        for name, (busy_ms, weighted_ms) in now.items():
            before = self._before.get(name)
            if before is not None and over_ms > 0:
                busy = min(max(busy_ms - before[0], 0) / over_ms, 1.0)
                found.append(Disk(name, busy, max(weighted_ms - before[1], 0) / over_ms))
        self._time_s, self._before = now_s, now
        return tuple(sorted(found, key=lambda disk: -disk.busy_share))

    def _read(self) -> dict[str, tuple[int, int]]:
        try:
            lines = (self._root / "proc/diskstats").read_text().splitlines()
        except OSError:
            return {}
        found = {}
        for line in lines:
            words = line.split()  # major minor name, then 11 counts; the 10th and 11th are times in milliseconds
            if len(words) < 14 or words[2].startswith(_LAYERS) or not (self._root / "sys/block" / words[2]).exists():
                continue
            with contextlib.suppress(ValueError):
                found[words[2]] = (int(words[12]), int(words[13]))
        return found


def read_past_cache(path: str, buffer: mmap.mmap, offset: int) -> int:
    """Reads bytes from the device into `buffer`, bypassing the page cache. Raises OSError with EINVAL if direct reads
    are not supported.
    """
    file = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        return os.preadv(file, [buffer], offset)
    finally:
        os.close(file)
