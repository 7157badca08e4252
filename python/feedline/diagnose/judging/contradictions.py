# SPDX-License-Identifier: Apache-2.0
"""What was measured and speaks against a cause: no finding is certain against its own evidence.

Each rule holds a figure of the same run, most of all a rung of the experiments, beside what a cause says. Where they
cannot both be true the cause keeps its name, as its time was spent, but is not certain, promises nothing for sure, and
says what contradicts it. Rules of one cause stand in its file; here are those that several share.
"""

from __future__ import annotations

from feedline.diagnose.judging.cause import Cause
from feedline.diagnose.judging.shares import HELPS, NO_SHORTER, SAME
from feedline.findings import Threshold
from feedline.watching.summary.figures import Summary

MOST = Threshold(0.6, "the most that a contradicted cause can be")
_AS_MUCH = 1.25  # times the batches, at the high end of the interval: beyond, it is not measured well enough
# Reads of a loaded disk are late, and a sample may take some of them: not ten times and more.
_EXPLAINED = 0.1
_UNSPENT = 0.5  # of the CPU that the batches would take


def against(cause: Cause, summary: Summary, share: float) -> list[str]:
    """All that contradicts this cause."""
    told = (speaks(summary, share) for speaks in cause.contradicted.values())
    return [reason for reason in told if reason is not None]


def page_cache(summary: Summary, _share: float) -> str | None:
    """With its files out of the page cache the loader is as fast as with them in it."""
    cold = summary.host.cold_share
    _, _, high = summary.ladder.tried.get("files in the page cache", (0.0, 0.0, 1.0))
    if cold is None or cold < SAME or high > _AS_MUCH:
        return None
    return f"measured: with its files in the page cache the loader makes {1 / cold:.2f} times the batches, no more"


def quick_reads(summary: Summary, _share: float) -> str | None:
    """Its samples wait longer than the disk takes for all that they read."""
    host, batch = summary.host, summary.loader.get("batch_size")
    if summary.native or not host.disk_small_read_ms or not isinstance(batch, int) or summary.making.stages is None:
        return None
    waits = summary.making.wall_ms * summary.making.stages.get("storage", 0.0) / max(batch, 1)
    rate = host.disk_ceiling_bytes_per_s or 0.0
    moved = 1000 * (host.read_bytes_per_sample or 0.0) / rate if rate else 0.0
    if host.disk_small_read_ms + moved >= _EXPLAINED * waits:
        return None
    return (
        f"measured: a small read of the disk takes {host.disk_small_read_ms:.2f} ms, and a sample waits {waits:.1f} ms"
    )


def more_gain_nothing(summary: Summary, _share: float) -> str | None:
    """More workers were measured to make no more batches."""
    gain = gain_of_more(summary)
    if gain is None or gain[1] > 1 / NO_SHORTER or gain[3] >= HELPS:
        return None
    return f"measured, the loader alone: {summary.counted(gain[0])}: {gain[1]:.2f} times the batches"


def idle_cpus(summary: Summary, _share: float) -> str | None:
    """CPU that the run did not use: a cause that uses CPUs up leaves its mark on them."""
    host, making = summary.host, summary.making
    if host.used_cpus is None or summary.native or not making.wall_ms or not summary.loop.loop_s:
        return None
    needed = making.cpu_ms * making.batches / 1000 / summary.loop.loop_s
    if host.used_cpus >= needed * _UNSPENT:
        return None
    return f"the run used {host.used_cpus:.2f} CPUs, and its batches would take {needed:.2f}"


def gain_of_more(summary: Summary) -> tuple[int, float, float, float] | None:
    """(workers, ratio, low, high) of the best rung with more workers; None: none was measured beside the present."""
    present = summary.ladder.rungs.get(summary.workers)
    more = {workers: rate for workers, rate in summary.ladder.rungs.items() if workers > summary.workers}
    if not present or not more:
        return None
    best = max(more, key=lambda workers: more[workers])
    low, high = summary.ladder.rung_intervals.get(best, (more[best], more[best]))
    own_low, own_high = summary.ladder.rung_intervals.get(summary.workers, (present, present))
    return best, more[best] / present, low / max(own_high, 1e-9), high / max(own_low, 1e-9)
