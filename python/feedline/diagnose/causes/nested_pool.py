# SPDX-License-Identifier: Apache-2.0
"""Workers make pools of processes or threads of their own."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.judging import gains, signals
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Cause, Found, Gain, Rule
from feedline.diagnose.judging.fixes import Fix
from feedline.findings import Entry, Threshold
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Summary

POOL = Threshold(
    2.5, "times what making it takes: the CPU of a pool of three threads, from first to last; of processes 1.3"
)


def _books(case: Case) -> Found | None:
    making = case.summary.making
    if not making.nested_pools:
        return None
    evidence = [f"workers made {making.nested_pools} pools of their own"]
    return Found(case.take_stages("python", "storage"), 0.8, evidence)


def _gain(summary: Summary, _share: float) -> Gain:
    """Workers do themselves what their pools did, without the waits for them. That work stays, and no pool is made.

    At the high end goes what a pool's own threads and its end cost, too, which nothing has told of.
    """
    waiting = (summary.making.stages or {}).get("storage", 0.0)
    running = summary.making.wall_ms * (1.0 - waiting)  # with the CPU of other threads
    batch, pools = prediction.batch_of(summary), summary.making.pools_ms
    own = gains.without_waiting(summary, replace(batch, cpu=max(batch.cpu, running)))
    low, high = (replace(own, cpu=max(own.cpu - pools * times, 0.0)) for times in (1.0, POOL))
    return gains.of_batch(summary, low)[0], gains.of_batch(summary, high)[1]


CAUSE = Cause(
    Entry(
        code="nested_pool",
        verb="diagnose",
        title="pools of processes, or of threads again and again, made inside workers",
        means="A worker that has others do its work waits for them, pays for making the pool and for sending work to "
        "it, and all of them share the CPUs that the loader's workers were counted for.",
        recognised="Pools that are made in workers are counted; their share is the dataset's own code and its waiting.",
        to_do="One pool: the loader's.",
        abstains="Nothing of the workers was seen. A pool that is created once and reused is not reported.",
        example="workers made 40 pools of their own.",
    ),
    rules=(Rule(160, _books),),
    fix=Fix("Let the DataLoader's workers be the only pool: raise num_workers, and do the work in the worker."),
    gain=_gain,
    signals=(signals.WORKERS,),
)
