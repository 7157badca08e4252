# SPDX-License-Identifier: Apache-2.0
"""Measurements that contradict a cause: no finding is certain if its own run contradicts it.

Each rule compares a metric of the same run, usually from an experiment, with a cause's claim. If both cannot be true,
the cause is still reported, as its time was spent, but it is not certain, promises no gain, and names the
contradiction. Rules of a single cause are in its file; this file has those that several share.
"""

from __future__ import annotations

from feedline.diagnose.rules.cause import Cause
from feedline.diagnose.rules.shares import HELPS, NO_SHORTER, SAME
from feedline.findings import Threshold
from feedline.profiler.summary.figures import Summary

MOST = Threshold(0.6, "maximum confidence of a contradicted cause")
_AS_MUCH = 1.25  # ratio of batches, at the interval's high end; above it, the measurement is too imprecise
# Reads of a loaded disk are slow, and a sample may need several of them, but not ten or more.
_EXPLAINED = 0.1
_UNSPENT = 0.5  # share of the CPU time that the batches would need


def against(cause: Cause, summary: Summary, share: float) -> list[str]:
    """Returns all contradictions of this cause."""
    told = (speaks(summary, share) for speaks in cause.contradicted.values())
    return [reason for reason in told if reason is not None]


def page_cache(summary: Summary, _share: float) -> str | None:
    """The loader is as fast with its files evicted from the page cache as with them in it."""
    cold = summary.host.cold_share
    _, _, high = summary.ladder.tried.get("files in the page cache", (0.0, 0.0, 1.0))
    if cold is None or cold < SAME or high > _AS_MUCH:
        return None
    return f"measured: with its files in the page cache the loader makes only {1 / cold:.2f} times as many batches"


def quick_reads(summary: Summary, _share: float) -> str | None:
    """Samples wait longer than the disk needs for all their reads."""
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
    """More workers were measured to make no more batches."""
    gain = gain_of_more(summary)
    if gain is None or gain[1] > 1 / NO_SHORTER or gain[3] >= HELPS:
        return None
    return f"measured, loader only: {summary.counted(gain[0])}: {gain[1]:.2f} times as many batches"


def idle_cpus(summary: Summary, _share: float) -> str | None:
    """The run left CPUs idle, although the cause claims to saturate them."""
    host, making = summary.host, summary.making
    if host.used_cpus is None or summary.native or not making.wall_ms or not summary.loop.loop_s:
        return None
    needed = making.cpu_ms * making.batches / 1000 / summary.loop.loop_s
    if host.used_cpus >= needed * _UNSPENT:
        return None
    return f"the run used {host.used_cpus:.2f} CPUs, but its batches would need {needed:.2f}"


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
