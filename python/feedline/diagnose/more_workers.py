# SPDX-License-Identifier: Apache-2.0
"""Checks whether raising ``num_workers``, the usual advice, would help."""

from __future__ import annotations

from feedline.diagnose import alternatives
from feedline.findings import Finding
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary


def more_workers(summary: Summary, named: list[Finding]) -> str | None:
    """Returns whether more workers would help and why, or None if the run had no workers."""
    if summary.workers == 0 or summary.making.batches == 0:
        return None
    measured = alternatives.of_workers(summary)
    if measured is not None:
        return measured
    is_undecided = summary.workers not in summary.ladder.rungs and any(
        n > summary.workers for n in summary.ladder.rungs
    )
    summary = prediction.comparable(summary)
    now = prediction.cycle_ms(summary, summary.workers)
    best = prediction.advised_workers(summary, prediction.within_reach(summary))
    if best is not None:
        summary = prediction.comparable_with(summary, best)
        gain = prediction.cycle_ms(summary, summary.workers) / prediction.cycle_ms(summary, best) - 1
        more = f"{summary.counted(best)} instead of {summary.workers} would help"
        if summary.loader.get("iterable"):
            return (
                f"{more} by up to {gain:.0%} if the dataset divides its samples among workers and has enough for each"
            )
        return f"{more}: {gain:.0%} more batches per second (predicted, not measured)"
    if is_undecided:
        present = summary.counted(summary.workers)
        more = f"more {summary.makers} were not shown to help the loop"
        return f"{more}: the rate of {present} was measured too imprecisely to compare"
    more = f"more {summary.makers} will not help"
    if prediction.memory_is_short(summary.host):
        return f"{more}: memory is already short, and each worker needs more"
    causes = {finding.code for finding in named}
    if "compute_bound" in causes:
        return f"{more}: the loop does not wait for batches"
    making, host = summary.making, summary.host
    if now <= (summary.loop.step_ms + making.unpickle_ms) * 1.01:
        return (
            f"{more}: the loader produces a batch every "
            f"{making.wall_ms / summary.workers:.1f} ms, and the loop needs {summary.loop.step_ms:.1f} ms per batch"
        )
    if making.read_ahead_ms > making.wall_ms / 2:
        return f"{more}: reads are already prefetched, and storage limits the rate"
    if prediction.disk_is_full(host):
        return f"{more}: the disk is saturated, so workers would wait for each other's reads"
    cpu = making.cpu_ms + making.pickle_ms + making.unpickle_ms + summary.loop.step_cpu_ms
    return (
        f"{more}: a batch needs {cpu:.1f} ms of CPU, so {host.cpus:.3g} CPUs produce a batch every "
        f"{cpu / host.cpus:.1f} ms at best, with any number of workers"
    )
