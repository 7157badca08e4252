# SPDX-License-Identifier: Apache-2.0
"""Metrics of batch production in Feedline's native threads, from the recorded counters of the engine.

A thread's busy time consists of CPU time, waiting for a CPU, and other waiting, which for these threads is waiting for
storage. The kernel reports the first two for each thread; the third is the remainder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from feedline.profiler.summary.figures import Blocks, Making, Store

_WORKING = ("storage", "decode", "transform", "batch")


def making_of(facts: Mapping[str, Any]) -> Making | None:
    """Returns None if no engine fills this loader's batches, or if the engine delivered no batches while it was
    profiled.
    """
    engine: Mapping[str, Any] = facts.get("engine") or {}
    batches = float(engine.get("batches") or 0)
    if batches < 1:
        return None
    stages: Mapping[str, Mapping[str, float]] = engine.get("stages") or {}
    busy = {name: float(stages.get(name, {}).get("busy_s", 0.0)) for name in _WORKING}
    whole = sum(busy.values())
    running, delayed, waiting = _divided(engine, busy, whole)
    alone = running + waiting  # on a machine that always has a free CPU
    shares, reading = _shares(stages, busy, running, waiting)
    idle = sum(stage.get("blocked_s", 0.0) + stage.get("starved_s", 0.0) for n, stage in stages.items() if n in busy)
    return Making(
        batches=int(batches),
        wall_ms=1000 * alone / batches,
        cpu_ms=1000 * running / batches,
        stages=shares,
        busy=whole / (whole + idle) if whole > 0 else None,
        delayed=delayed / (running + delayed) if running + delayed > 0 else None,
        read_ahead_ms=1000 * waiting / batches if engine.get("reads_ahead") else 0.0,
        store=_store_of(engine.get("hosts") or []),
        reading=reading,
        blocks=_blocks_of(engine),
    )


def _blocks_of(engine: Mapping[str, Any]) -> Blocks | None:
    if not engine.get("blocks_bytes"):
        return None
    return Blocks(int(engine["blocks_bytes"]), int(engine["blocks_delivered_bytes"]))


def _store_of(hosts: Sequence[Mapping[str, Any]]) -> Store | None:
    most = max(hosts, key=lambda host: float(host["requests"]), default=None)
    if most is None or most["requests"] < 1:
        return None
    latency_s, bytes_per_s = float(most["latency_s"]), float(most["bytes_per_s"])
    return Store(
        str(most["name"]), int(most["requests"]), int(most["bytes"]), 1000 * latency_s or None, bytes_per_s or None
    )


def read_per_sample(facts: Mapping[str, Any]) -> float | None:
    """Returns the bytes read per sample, as counted by Feedline's threads because /proc may not count their reads.
    Returns None if the threads read nothing.
    """
    storage = ((facts.get("engine") or {}).get("stages") or {}).get("storage") or {}
    return storage["bytes"] / storage["items"] if storage.get("items") else None


def samples_per_batch(facts: Mapping[str, Any]) -> float | None:
    engine: Mapping[str, Any] = facts.get("engine") or {}
    batches = float(engine.get("batches") or 0)
    return float(engine.get("samples") or 0) / batches if batches else None


def _divided(engine: Mapping[str, Any], busy: Mapping[str, float], whole: float) -> tuple[float, float, float]:
    """Returns busy seconds as (running, waiting for a CPU, waiting for storage)."""
    running = engine.get("running_s")
    if running is None:  # without these times, reading counts as waiting, and all other stages as running
        return whole - busy["storage"], 0.0, busy["storage"]
    running = min(float(running), whole)
    delayed = min(float(engine.get("delayed_s") or 0.0), whole - running)
    return running, delayed, min(whole - running - delayed, busy["storage"])


def _shares(
    stages: Mapping[str, Mapping[str, float]], busy: Mapping[str, float], running: float, waiting: float
) -> tuple[dict[str, float] | None, float]:
    """Returns times by the names of :data:`feedline.profiler.summary.figures.STAGES`, and the CPU time of reading. CPU
    time is divided among the stages in proportion to their times, excluding waits.

    Copying bytes from the page cache, and decompressing blocks of them, counts as decoding or, without decoding, as
    filling the rows of the batch.
    """
    parts = {**busy, "storage": max(busy["storage"] - waiting, 0.0)}
    scale = running / max(sum(parts.values()), 1e-12)
    decodes = stages.get("decode", {}).get("items", 0.0) > 0
    times = {
        "storage": waiting,
        "decode": scale * (parts["decode"] + (parts["storage"] if decodes else 0.0)),
        "transform": scale * parts["transform"],
        "python": 0.0,
        "collate": scale * (parts["batch"] + (0.0 if decodes else parts["storage"])),
    }
    whole = sum(times.values())
    if whole <= 0:
        return None, 0.0
    return {name: time / whole for name, time in times.items()}, scale * parts["storage"] / whole
