# SPDX-License-Identifier: Apache-2.0
"""Measures the machine and the watched process tree between two samples. Most of the data comes from the engine's
sampler.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _engine
from ..errors import Error
from . import disks, memory, processes

_RESTART_S = 120.0  # a sampler stores all its samples, so a new one has few to copy
_SLOWEST_START_S = 2.0
_LOOK_S = 0.005
_MOST_PROCESSES = 32


@dataclass(frozen=True)
class ProcessFigures:
    """The activity of one process since the last sample. Rates are None in the first sample."""

    pid: int
    state: str  # as in ps: R running, S sleeping, D waiting for a disk, T stopped, Z ended; "?" if unknown
    cpus_used: float | None
    read_bytes_per_s: float | None  # by read calls, from devices, the page cache and pipes
    device_bytes_per_s: float | None
    resident_bytes: int
    threads: int


@dataclass(frozen=True)
class Figures:
    """Host activity. None means unavailable on this system or to this user. Shares are fractions of time; rates cover
    the time since the last sample.
    """

    pids: tuple[int, ...]
    cpus_used: float | None  # used by the tree
    cpus_usable: float  # by affinity and quota
    cpus_busy: float | None  # of the whole machine
    delay_share: float | None  # of the tree's runnable time: ready, but without a CPU
    threads: int
    read_bytes_per_s: float | None  # by the tree, from devices
    resident_bytes: int  # shared memory counts in every process
    available_bytes: int | None  # of the machine
    swapped_pages_per_s: float | None
    cpu_pressure: float | None
    io_pressure: float | None
    memory_pressure: float | None
    throttled_share: float | None
    limit_hits_per_s: float | None  # number of times that the cgroup reached its memory limit
    disk_reads_per_s: float | None
    disk_bytes_per_s: float | None
    disk_read_ms: float | None
    memory: memory.Memory
    disks: tuple[disks.Disk, ...]
    notes: tuple[str, ...]
    processes: tuple[ProcessFigures, ...] = ()  # in the tree, those with the most CPU time first; at most 32


class HostWatch:
    """Samples a process and its descendants. Must be closed."""

    def __init__(self, pid: int, interval_s: float, root: Path = Path("/")) -> None:
        self._pid, self._root = pid, root
        self._engine_root = "" if root == Path("/") else str(root)
        self._period_s = max(interval_s / 2, 0.05)
        self._sampler = self._start()
        self._begun = time.monotonic()
        self._host: dict[str, Any] | None = None
        self._processes: dict[int, dict[str, Any]] = {}
        self._latest: Figures | None = None
        self._is_first = False  # whether `_latest` is of the first sample, without rates
        self._disks = disks.DiskWatch(root)
        self._memory = memory.MemoryWatch(pid, root)

    def close(self) -> None:
        self._sampler.stop()

    def look(self) -> Figures:
        """Returns the activity since the previous sample; rates are None in the first sample."""
        record = self._sampler.record()
        waited = time.monotonic()
        while self._needs_another(record) and time.monotonic() - waited < _SLOWEST_START_S:
            time.sleep(_LOOK_S)
            record = self._sampler.record()
        if time.monotonic() - self._begun > _RESTART_S:
            self._sampler.stop()
            self._sampler, self._begun = self._start(), time.monotonic()
        if not record["host"]:
            raise Error("the machine's counters were not read in time; memory or CPU time may be short")
        now = record["host"][-1]
        tree = {row["pid"]: row for row in record["processes"] if row["time_ns"] == now["time_ns"]}
        if self._latest is None or self._host is None or now["time_ns"] > self._host["time_ns"]:
            self._is_first = self._host is None
            self._latest = self._between(self._host, now, tree)
            self._host, self._processes = now, tree
        return self._latest

    def _needs_another(self, record: dict[str, Any]) -> bool:
        """Whether there is no sample yet, or only the first one, which has no rates; on a busy machine, samples may
        arrive late.
        """
        if not record["host"]:
            return True
        return self._is_first and record["host"][-1]["time_ns"] <= (self._host or {"time_ns": -1})["time_ns"]

    def _start(self) -> _engine.HostSampler:
        return _engine.HostSampler(self._pid, self._period_s, self._engine_root)

    def _between(
        self,
        before: dict[str, Any] | None,
        now: dict[str, Any],
        rows: dict[int, dict[str, Any]],
    ) -> Figures:
        over_ns = now["time_ns"] - before["time_ns"] if before else 0
        per_s = _rates(before, now, over_ns)
        tree = _rates_of_tree(self._processes, rows, over_ns)
        cpu, delay = tree("cpu_ns"), tree("delay_ns")
        reads, read_ns = per_s("disk_reads"), per_s("disk_read_ns")
        found = self._memory.look(list(rows))
        return Figures(
            pids=tuple(rows),
            cpus_used=_share(cpu),
            cpus_usable=_engine.cpu_limits(self._engine_root, self._pid).capacity,
            cpus_busy=_share(per_s("busy_ns")),
            delay_share=delay / (cpu + delay) if cpu is not None and delay is not None and cpu + delay > 0 else None,
            threads=sum(row["threads"] for row in rows.values()),
            read_bytes_per_s=tree("device_bytes"),
            resident_bytes=sum(row["resident_bytes"] for row in rows.values()),
            available_bytes=now["available_bytes"] or None,
            swapped_pages_per_s=per_s("swapped_pages"),
            cpu_pressure=_share(per_s("cpu_pressure_ns")),
            io_pressure=_share(per_s("io_pressure_ns")),
            memory_pressure=_share(per_s("memory_pressure_ns")),
            throttled_share=_share(per_s("throttled_ns")),
            limit_hits_per_s=per_s("memory_events"),
            disk_reads_per_s=reads,
            disk_bytes_per_s=per_s("disk_bytes"),
            disk_read_ms=read_ns / reads / 1e6 if reads and read_ns is not None else None,
            memory=found,
            disks=self._disks.look(),
            notes=found.notes,
            processes=_processes(self._processes, rows, over_ns, self._root),
        )


def _processes(
    before: dict[int, dict[str, Any]], now: dict[int, dict[str, Any]], over_ns: int, root: Path
) -> tuple[ProcessFigures, ...]:
    made = []
    for pid, row in now.items():
        rate = _rates_of_tree(before, {pid: row}, over_ns)
        made.append((rate("cpu_ns"), rate, row))
    made.sort(key=lambda one: (-(one[0] or 0.0), one[2]["pid"]))
    return tuple(
        ProcessFigures(
            pid=row["pid"],
            state=processes.state_of(row["pid"], root),
            cpus_used=_share(cpu),
            read_bytes_per_s=rate("read_bytes"),
            device_bytes_per_s=rate("device_bytes"),
            resident_bytes=row["resident_bytes"],
            threads=row["threads"],
        )
        for cpu, rate, row in made[:_MOST_PROCESSES]
    )


Rate = Callable[[str], "float | None"]


def _rates(before: dict[str, Any] | None, now: dict[str, Any], over_ns: int) -> Rate:
    """Returns a host counter's increase per second, or None if the counter is unavailable."""

    def rate(name: str) -> float | None:
        if before is None or over_ns <= 0 or before[name] is None or now[name] is None:
            return None
        return float(max(now[name] - before[name], 0)) / over_ns * 1e9

    return rate


def _rates_of_tree(before: dict[int, dict[str, Any]], now: dict[int, dict[str, Any]], over_ns: int) -> Rate:
    """Returns a counter's increase per second, summed over processes; new processes start at zero."""

    def rate(name: str) -> float | None:
        if over_ns <= 0:
            return None
        grown = sum(max(row[name] - before.get(pid, {name: 0})[name], 0) for pid, row in now.items())
        return float(grown) / over_ns * 1e9

    return rate


def _share(ns_per_s: float | None) -> float | None:
    return None if ns_per_s is None else ns_per_s / 1e9
