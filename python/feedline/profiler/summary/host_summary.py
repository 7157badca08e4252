# SPDX-License-Identifier: Apache-2.0
"""Metrics from the sampled host counters during a loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from feedline.profiler.recordings import Recording
from feedline.profiler.summary.engine_summary import read_per_sample
from feedline.profiler.summary.figures import Host

_FEWEST_SAMPLES = 3
_FROM_DEVICE = 0.3


@dataclass
class Window:
    """Differences of counters over a time span, in ns, bytes and counts."""

    seconds: float = 0.0
    tree: dict[str, float] = field(default_factory=dict)  # of all processes of the run
    workers: dict[str, float] = field(default_factory=dict)
    loop: dict[str, float] = field(default_factory=dict)
    host: dict[str, float | None] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def delay_per_cpu(self) -> float | None:
        """Returns the time that batch-producing processes were runnable without a CPU, relative to their CPU time."""
        counters = self.workers if self.workers.get("cpu_ns") else self.loop
        cpu = counters.get("cpu_ns", 0.0)
        return counters.get("delay_ns", 0.0) / cpu if cpu > 0 else None

    def in_kernel(self) -> float | None:
        """Returns the share of their CPU time that batch-producing processes spend in the kernel."""
        counters = self.workers if self.workers.get("cpu_ns") else self.loop
        cpu = counters.get("cpu_ns", 0.0)
        return counters.get("system_ns", 0.0) / cpu if cpu > 0 else None

    def step_delayed(self) -> float | None:
        """Returns the share of the loop process's runnable time that the process spent waiting for a CPU."""
        cpu, delay = self.loop.get("cpu_ns", 0.0), self.loop.get("delay_ns", 0.0)
        return delay / (cpu + delay) if cpu + delay > 0 else None


def window_of(host: Mapping[str, Any], begin_ns: int, end_ns: int, loop: int, workers: Iterable[int]) -> Window:
    """Summarises the samples between two times, including the last sample before and the first one after, if they
    exist.
    """
    rows = host.get("host", [])
    window = Window()
    inside = [row for row in rows if begin_ns <= row["time_ns"] <= end_ns]
    if len(inside) < _FEWEST_SAMPLES:
        window.missing["host"] = "the loop was too short for samples of the host's counters"
        return window
    first, last = inside[0], inside[-1]
    window.seconds = (last["time_ns"] - first["time_ns"]) / 1e9
    for name, value in last.items():
        before = first[name]
        window.host[name] = None if value is None or before is None else value - before
    window.host["available_bytes"] = min(row["available_bytes"] for row in inside)
    if window.host.get("memory_pressure_ns") is None:
        window.missing["pressure"] = "this kernel has no /proc/pressure"
    if window.host.get("throttled_ns") is None:
        window.missing["throttled"] = "the cgroup's cpu.stat cannot be read"
    by_process = _differences(host.get("processes", []), first["time_ns"], last["time_ns"])
    of_workers = set(workers)
    for pid, counters in by_process.items():
        for name, value in counters.items():
            window.tree[name] = window.tree.get(name, 0.0) + value
            if pid in of_workers:
                window.workers[name] = window.workers.get(name, 0.0) + value
            elif pid == loop:
                window.loop[name] = value
    if not by_process:
        window.missing["processes"] = "the run's processes were not found in /proc"
    elif host.get("unseen"):
        window.missing["io"] = "this user is not permitted to read the I/O counters of the run's processes"
    return window


_GROWING = ("cpu_ns", "system_ns", "delay_ns", "device_bytes", "read_bytes", "read_calls", "major_faults")


def _differences(rows: Iterable[Mapping[str, Any]], begin_ns: int, end_ns: int) -> dict[int, dict[str, float]]:
    """Differences by process. The counters of a process that started in between count from zero."""
    first: dict[int, Mapping[str, Any]] = {}
    last: dict[int, Mapping[str, Any]] = {}
    for row in rows:
        if row["time_ns"] <= end_ns:
            last[row["pid"]] = row
            if row["time_ns"] <= begin_ns:
                first[row["pid"]] = row
    grown: dict[int, dict[str, float]] = defaultdict(dict)
    for pid, row in last.items():
        if row["time_ns"] >= begin_ns:
            before = first.get(pid, {})
            grown[pid] = {name: max(row[name] - before.get(name, 0), 0) for name in _GROWING}
    return grown


def host_summary(recording: Recording, window: Window, facts: Mapping[str, Any], samples: int | None) -> Host:
    quota = recording.host.get("quota_cpus")
    cpus = float(facts.get("cpus") or 1)
    if quota:
        cpus = min(cpus, max(quota, 0.01))
    ranks, sharing = _ranks_of(recording), max(int(facts.get("sharing_ranks") or 1), 1)
    limits = replace(_of_memory(recording, _of_files_and_disk(recording)), quota_cpus=quota)
    machine = float(facts.get("cpus") or 1) / sharing
    limits = replace(limits, cpus=cpus / sharing, machine_cpus=machine, ranks=ranks, sharing=sharing)
    if window.seconds <= 0 or not window.tree:
        return limits
    ns = window.seconds * 1e9

    def share(name: str) -> float | None:
        value = window.host.get(name)
        return None if value is None else min(max(value / ns, 0.0), 1.0)

    # the kernel sums over the CPUs on which a group's tasks are throttled
    busy = max(min(int(facts.get("cpus") or 1), ranks * int(facts.get("num_workers") or 1)), 1)
    stopped = window.host.get("throttled_ns")
    throttled = None if stopped is None else max(stopped / ns, 0.0)
    used = window.tree["cpu_ns"] / ns / ranks  # of one rank, like the CPUs
    read = window.workers.get("read_bytes") or window.loop.get("read_bytes", 0.0)
    calls = window.workers.get("read_calls") or window.loop.get("read_calls", 0.0)
    device = window.tree["device_bytes"]
    if samples and (own := read_per_sample(facts)) is not None:
        read = max(own * samples, device)  # for a small file the disk reads a page
    requests = window.host.get("disk_reads") or 0
    readable = "io" not in window.missing
    return replace(
        limits,
        used_cpus=used,
        wanted_cpus=(window.tree["cpu_ns"] + window.tree["delay_ns"]) / ns / ranks,
        others_cpus=max((window.host.get("busy_ns") or 0) / ns - used * max(sharing, ranks), 0.0) / sharing,
        step_delayed=window.step_delayed(),
        throttled=None if throttled is None else min(throttled / busy, 1.0),
        in_kernel=window.in_kernel(),
        memory_pressure=share("memory_pressure_ns"),
        memory_events=int(window.host["memory_events"] or 0) if window.host.get("memory_events") is not None else None,
        major_faults_per_s=window.tree["major_faults"] / window.seconds,
        io_pressure=share("io_pressure_ns"),
        read_bytes_per_s=device / window.seconds if readable else None,
        read_bytes_per_sample=read / samples if samples and readable else None,
        reads_per_sample=calls / samples if samples and readable else None,
        device_share=min(device / read, 1.0) if read > 0 and readable else None,
        disk_latency_ms=(window.host.get("disk_read_ns") or 0) / requests / 1e6 if requests else None,
    )


def _ranks_of(recording: Recording) -> int:
    """Returns the number of the run's ranks on this machine; the processes' counters are totals over these ranks."""
    return max(len({facts["local_rank"] for facts in recording.loaders if "local_rank" in facts}), 1)


def missing_of_disk(recording: Recording, host: Host) -> dict[str, str]:
    """Returns why the disk's speed is unknown; empty if it is known or samples cannot come from a disk."""
    if host.disk_ceiling_bytes_per_s is not None or not host.files_seen or (host.device_share or 0.0) < _FROM_DEVICE:
        return {}
    disk = recording.experiments.disk if recording.experiments is not None else None
    return {"disk": f"the disk's speed was not measured{': ' + disk.refused if disk and disk.refused else ''}"}


def _of_memory(recording: Recording, host: Host) -> Host:
    sampled = recording.host
    shared = [used for row in sampled.get("host", []) if (used := row.get("shared_memory_used")) is not None]
    return replace(
        host,
        shared_memory_used=max(shared, default=None),
        memory_bytes=max((float(row["bytes"]) for row in sampled.get("memory", [])), default=None),
        memory_limit_bytes=sampled.get("memory_limit_bytes"),
    )


def _of_files_and_disk(recording: Recording) -> Host:
    files, tried = recording.files, recording.experiments
    disk = tried.disk if tried is not None else None
    cold = next((c for c in tried.comparisons if c.files is not None), None) if tried is not None else None
    return Host(
        disk_ceiling_bytes_per_s=disk.bytes_per_s if disk else None,
        disk_read_bytes=disk.read_bytes if disk else None,
        disk_small_read_ms=disk.latency_ms if disk else None,
        files_seen=files.seen if files else 0,
        file_bytes=files.median_bytes if files else None,
        files_place=files.place if files else None,
        cached_before=files.cached_before if files else None,
        cold_share=min(1 / cold.ratio, 1.0) if cold and cold.ratio > 0 else None,
    )
