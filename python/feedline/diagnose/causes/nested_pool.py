# SPDX-License-Identifier: Apache-2.0
"""Workers create their own pools of processes or threads."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.fixes import Fix
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

POOL = Threshold(
    2.5, "CPU time of a pool of three threads over its lifetime, relative to its creation time (1.3 for processes)"
)


def _evaluate(analysis: Analysis) -> Found | None:
    making = analysis.summary.making
    if not making.nested_pools:
        return None
    evidence = [f"workers created {making.nested_pools} pools"]
    stages: tuple[str, ...] = ("python", "storage") if making.collating_pools < 1 else ()
    if making.collating_pools > 0:
        stages = (*stages, "collate")
        evidence.append(f"collate_fn created {making.collating_pools:.0%} of them")
    return Found(analysis.take_stages(*stages), 0.8, evidence)


def _gain(summary: Summary, _share: float) -> Gain:
    """Returns the gain if workers do the pools' work themselves, without waiting for pools.

    The upper bound also includes the CPU time of a pool's threads and of its shutdown, which were not measured.
    """
    waiting = (summary.making.stages or {}).get("storage", 0.0)
    running = summary.making.wall_ms * (1.0 - waiting)  # including other threads' CPU time
    batch, pools = prediction.batch_of(summary), summary.making.pools_ms
    own = gains.without_waiting(summary, replace(batch, cpu=max(batch.cpu, running)))
    low, high = (replace(own, cpu=max(own.cpu - pools * times, 0.0)) for times in (1.0, POOL))
    return gains.of_batch(summary, low)[0], gains.of_batch(summary, high)[1]


CAUSE = Cause(
    Entry(
        code="nested_pool",
        verb="diagnose",
        title="workers repeatedly create pools of processes or threads",
        means="A worker that delegates its work waits for the pool, and spends time on creating the pool and sending "
        "work to it; all pools compete for the CPUs that the number of workers was chosen for.",
        recognised="Counts pools created in workers; the share is that of the dataset's own code and its waits, or of "
        "collation if collate_fn creates the pools.",
        to_do="Use the loader's workers as the only pool.",
        abstains="The workers were not observed. A pool that is created once and reused is not reported.",
        example="workers created 40 pools.",
    ),
    rules=(Rule(160, _evaluate),),
    fix=Fix("Use the DataLoader's workers as the only pool: raise num_workers, and do the work in the worker."),
    gain=_gain,
    signals=(signals.WORKERS,),
)
