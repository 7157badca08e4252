# SPDX-License-Identifier: Apache-2.0
"""Measurements that contradict a cause: no finding is certain if a measurement from the same run contradicts it.

Each rule compares a metric from the same run, usually from an experiment, with the claim of a cause. If both cannot be
true, the cause is still reported, because its time was spent, but the finding is uncertain, promises no gain, and
includes the contradiction. Rules for a single cause are in that cause's file; this file contains shared rules.
"""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.rules.cause import Cause
from feedline.diagnose.rules.shares import HELPS, NO_SHORTER, SAME
from feedline.findings import Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

MOST = Threshold(0.6, "maximum confidence of a contradicted cause")
_AS_MUCH = 1.25  # ratio of batches, at the interval's high end; above it, the measurement is too imprecise
# Reads of a loaded disk are slow, and a sample may need several of them, but not ten or more.
_EXPLAINED = 0.1
_ON_DISK = 0.3  # share of reads from block devices
_HARDLY = 0.15  # share of waiting that is not a problem
_UNSPENT = 0.5  # share of the CPU time that the batches would need


def against(cause: Cause, summary: Summary, share: float) -> list[str]:
    """Returns all contradictions of this cause."""
    reasons = (speaks(summary, share) for speaks in cause.contradicted.values())
    return [reason for reason in reasons if reason is not None]


def page_cache(summary: Summary, _share: float) -> str | None:
    """Returns a sentence if the loader is as fast with its files evicted from the page cache as with cached files."""
    cold = summary.host.cold_share
    _, _, high = summary.ladder.tried.get("files in the page cache", (0.0, 0.0, 1.0))
    if cold is None or cold < SAME or high > _AS_MUCH:
        return None
    return f"measured: with files in the page cache, the loader produces only {1 / cold:.2f} times as many batches"


def quick_reads(summary: Summary, _share: float) -> str | None:
    """Returns a sentence if samples wait longer than the disk needs for all their reads."""
    host, batch = summary.host, summary.loader.get("batch_size")
    if summary.native or not host.disk_small_read_ms or not isinstance(batch, int) or summary.making.stages is None:
        return None
    waits = summary.making.wall_ms * summary.making.stages.get("storage", 0.0) / max(batch, 1)
    rate = host.disk_ceiling_bytes_per_s or 0.0
    moved = 1000 * (host.read_bytes_per_sample or 0.0) / rate if rate else 0.0
    if host.disk_small_read_ms + moved >= _EXPLAINED * waits:
        return None
    return f"measured: a small read takes {host.disk_small_read_ms:.2f} ms, but a sample waits {waits:.1f} ms"


def more_gain_nothing(summary: Summary, _share: float) -> str | None:
    """Returns a sentence if measurements show that more workers do not produce more batches."""
    gain = gain_of_more(summary)
    if gain is None or gain[1] > 1 / NO_SHORTER or gain[3] >= HELPS:
        return None
    return f"measured, loader only: {summary.counted(gain[0])} produced {gain[1]:.2f} times as many batches"


def idle_cpus(summary: Summary, _share: float) -> str | None:
    """Returns a sentence if CPUs were idle although the cause claims that they are saturated."""
    host, making = summary.host, summary.making
    if host.used_cpus is None or summary.native or not making.wall_ms or not summary.loop.loop_s:
        return None
    needed = making.cpu_ms * making.batches / 1000 / summary.loop.loop_s
    if host.used_cpus >= needed * _UNSPENT:
        return None
    return f"the run used {host.used_cpus:.2f} CPUs, but its batches would have needed {needed:.2f}"


def other_programs(summary: Summary, _share: float) -> str | None:
    """Returns a sentence if other programs, and not the run, use up the CPUs: with the CPUs to itself, the loop would
    hardly wait, the disk would limit it, or more workers would help.
    """
    host, own = summary.host, prediction.without_rungs(summary)
    own = replace(own, loop=replace(own.loop, epochs=1))  # the start of an epoch is another cause
    if not host.contended or summary.native or summary.workers == 0:
        return None
    used = f"other programs used {host.sharing * (host.others_cpus or 0.0):.1f} CPUs; without them, the model predicts"
    cycle = prediction.cycle_ms(own, summary.workers)
    waiting = 1.0 - summary.loop.step_ms / max(cycle, 1e-9)
    if waiting < _HARDLY:
        return f"{used} that the loop waits {max(waiting, 0.0):.0%} of its time"
    read = (host.read_bytes_per_s or 0.0) * prediction.current_ms(summary) / max(cycle, 1e-9)
    if host.disk_ceiling_bytes_per_s and read > host.disk_ceiling_bytes_per_s:
        reached = f"a probe of the disk reached {host.disk_ceiling_bytes_per_s / 1e6:.0f} MB/s"
        return f"{used} reads of {read / 1e6:.0f} MB/s, but {reached}"
    size, reached_ms = summary.loader.get("batch_size"), host.disk_small_read_ms
    if isinstance(size, int) and reached_ms and (host.device_share or 0.0) > _ON_DISK:
        samples, readable = 1000 * size / max(cycle, 1e-9), 1000 * summary.workers / reached_ms
        if samples > readable:
            one_each = f"reads of {reached_ms:.2f} ms allow {readable:.0f} samples/s with {summary.workers} at a time"
            return f"{used} {samples:.0f} samples/s, but {one_each}"
    if summary.workers > host.cpus:
        return None
    gain = cycle / max(prediction.cycle_ms(own, summary.workers + 1), 1e-9)
    return f"{used} {gain:.2f} times as many batches with one more worker" if gain >= HELPS else None


def gain_of_more(summary: Summary) -> tuple[int, float, float, float] | None:
    """Returns (workers, ratio, low, high) of the best measurement with more workers, or None if there is none."""
    present = summary.ladder.rungs.get(summary.workers)
    more = {workers: rate for workers, rate in summary.ladder.rungs.items() if workers > summary.workers}
    if not present or not more:
        return None
    best = max(more, key=lambda workers: more[workers])
    low, high = summary.ladder.rung_intervals.get(best, (more[best], more[best]))
    own_low, own_high = summary.ladder.rung_intervals.get(summary.workers, (present, present))
    return best, more[best] / present, low / max(own_high, 1e-9), high / max(own_low, 1e-9)
