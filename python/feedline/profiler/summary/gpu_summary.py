# SPDX-License-Identifier: Apache-2.0
"""Metrics of copies to a device in watched steps, and of the used GPUs from NVML's samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Total
from feedline.profiler.recordings import ProcessRecord, Recording
from feedline.profiler.summary.figures import Copies, Gpu

_FEWEST_SAMPLES = 4  # one second of samples
_IDLE = 0.1  # maximum GPU-Util at which a sample's power counts as idle
_LOWEST, _HIGHEST = 0.1, 0.9  # quantiles that describe the spread of the samples


def copies_of(process: ProcessRecord) -> tuple[Copies, ...]:
    """Returns the copies from host memory to a device in watched steps, by kind, sorted by time on the device in
    descending order.

    Times exclude the first step if others were timed, because memory is first allocated in that step, so that the
    stream waits for the host between a copy's events.
    """
    made: dict[int, list[tuple[int, int, int]]] = defaultdict(list)  # by flags: (copies, bytes, ns in the calls) of a
    # step
    timed: dict[int, list[tuple[int, int]]] = defaultdict(list)
    watched = max(sum(1 for event in process.events if event.kind == events.CALLS), 1)
    for event in process.events:
        flags, count = event.b % 256, event.b // 256
        if event.kind == events.COPIES:
            made[flags].append((count, event.a, event.wall_ns))
        elif event.kind == events.DEVICE_TIMES:
            timed[flags].append((count, event.a))
    kinds = []
    for flags, steps in made.items():
        per_step = sum(count for count, _, _ in steps) / watched
        warm, on_device = steps[1:] or steps, timed[flags][1:] or timed[flags]
        times = sum(count for count, _ in on_device)
        kinds.append(
            Copies(
                pinned=bool(flags & events.PINNED),
                asked=bool(flags & events.ASKED),
                other_stream=bool(flags & events.OTHER_STREAM),
                per_step=per_step,
                bytes_per_step=sum(size for _, size, _ in steps) / watched,
                host_ms=per_step * sum(ns for _, _, ns in warm) / max(sum(count for count, _, _ in warm), 1) / 1e6,
                device_ms=per_step * sum(ns for _, ns in on_device) / times / 1e6 if times else None,
                timed=times,
            )
        )
    return tuple(sorted(kinds, key=lambda kind: -(kind.device_ms or kind.host_ms)))


def steps_of(process: ProcessRecord) -> tuple[float | None, int]:
    """Returns (ms of the device's stream per watched step, number of timed steps)."""
    timed = [e for e in process.events if e.kind == events.DEVICE_TIMES and e.b % 256 == events.WHOLE_STEP]
    count = sum(event.b // 256 for event in timed)
    return (sum(event.a for event in timed) / count / 1e6 if count else None), count


def device_of(recording: Recording, process: ProcessRecord) -> dict[str, Any]:
    """Returns the facts that a process recorded about its device; empty if no watched step used a device."""
    return next((facts for facts in recording.devices if facts.get("pid") == process.pid), {})


def gpu_of(
    host: Mapping[str, Any], span: tuple[int, int], device: Mapping[str, Any], uses_cuda: bool
) -> tuple[Gpu | None, str | None]:
    """Returns (samples, between two times, of the GPU that the loop's process used; the reason if there are none).

    Both values are None if no GPU was used.
    """
    if not uses_cuda:
        return None, None
    if host.get("gpu_unavailable"):
        return None, str(host["gpu_unavailable"])
    known: Sequence[Mapping[str, Any]] = host.get("gpus", [])
    tree = {row["pid"] for row in host.get("processes", [])}
    listed = [process for process in host.get("gpu_processes", []) if process["pid"] in tree]
    used = {gpu["index"] for gpu in known if gpu["uuid"] and gpu["uuid"] == device.get("uuid")}
    used = used or {process["index"] for process in listed}
    if not used and len(known) == 1:
        used = {known[0]["index"]}
    if not used:
        return None, "NVML does not report which of the machine's GPUs the run used"
    rows = [row for row in host.get("gpu", []) if span[0] <= row["time_ns"] <= span[1] and row["index"] in used]
    busy = [row["utilisation"] for row in rows if row["utilisation"] is not None]
    if rows and not busy:
        divided = any(gpu["partitioned"] for gpu in known if gpu["index"] in used)
        return None, "NVML does not report how busy the GPU is" + (", as it is divided by MIG" if divided else "")
    if len(busy) < _FEWEST_SAMPLES:
        return None, "the loop was too short for samples of the GPU"
    strangers = {p["index"] for p in host.get("gpu_processes", []) if p["pid"] not in tree} if listed else set()
    return _gpu(known, used, rows, bool(strangers & used)), None


def _gpu(
    known: Sequence[Mapping[str, Any]], used: Collection[int], rows: Sequence[Mapping[str, Any]], shared: bool
) -> Gpu:
    facts = [gpu for gpu in known if gpu["index"] in used]

    def values(name: str) -> list[float]:
        return sorted(float(row[name]) for row in rows if row.get(name) is not None)

    def mean(name: str) -> float | None:
        return sum(values(name)) / len(values(name)) if values(name) else None

    busy = values("utilisation")
    idle = [row for row in rows if row["utilisation"] is not None and row["utilisation"] <= _IDLE]
    idle_power = [float(row["power_w"]) for row in idle if row["power_w"] is not None]
    memory = values("memory_used_bytes")
    return Gpu(
        indices=tuple(sorted(used)),
        name=facts[0]["name"],
        capability=facts[0]["capability"],
        utilisation=sum(busy) / len(busy),
        lowest=busy[int(_LOWEST * (len(busy) - 1))],
        highest=busy[int(_HIGHEST * (len(busy) - 1) + 0.5)],
        memory_used_bytes=int(memory[-1]) if memory else None,
        memory_bytes=min(gpu["memory_bytes"] for gpu in facts),
        received_bytes_per_s=mean("received_bytes_per_s"),
        power_w=mean("power_w"),
        idle_power_w=sum(idle_power) / len(idle_power) if idle_power else None,
        clock_mhz=mean("clock_mhz"),
        slowed=mean("slowed"),
        shared=shared,
    )


def pin_ms(process: ProcessRecord) -> float | None:
    """Returns the time in ms that torch's loader takes to page-lock a batch."""
    pins = process.totals.get(events.PIN, Total())
    return pins.wall_ns / pins.times / 1e6 if pins.times else None
