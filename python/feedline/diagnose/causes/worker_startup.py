# SPDX-License-Identifier: Apache-2.0
"""Each epoch starts new workers."""

from __future__ import annotations

from typing import Any

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.shares import NAMED, NO_SHORTER, SAME
from feedline.findings import Entry, Threshold
from feedline.profiler.summary.figures import Summary

LATER = Threshold(
    0.5, "delay of an epoch, relative to the start of workers, above which the delay has a different cause"
)


def _evaluate(analysis: Analysis) -> Found | None:
    summary, share = analysis.summary, analysis.summary.waits.startup
    if share < NAMED:
        return None
    ready = summary.making.startup_ms
    evidence = [f"{summary.loop.epochs} epochs started {summary.counted(summary.workers)} each"]
    if ready is not None:
        evidence.append(f"a worker takes {ready:.0f} ms from its first line of code to its first task")
    once = summary.loop.epochs == 1 or bool(summary.loader.get("persistent_workers"))
    against = ["workers start only once, not in every epoch"] if once else []
    return Found(share, 0.7 if once else 0.92, evidence, against)


def _gain(summary: Summary, share: float) -> Gain:
    """Returns the gain if workers start once instead of in every epoch. If they already start only once, returns the
    gain of a cheaper start.

    The loop's process draws the sample order while workers start. If the wait for an epoch's first batch is clearly
    longer than starting workers and producing a batch, drawing the order is the bottleneck, and persistent workers save
    only the time until a worker's first line of code runs.
    """
    waits, making, epochs = summary.waits, summary.making, summary.loop.epochs
    if epochs < 2 or summary.loader.get("persistent_workers"):
        return 0.0, gains.of_share(summary, share)[1]
    share -= gains.first_start(summary)
    whole_ms = 1000 * summary.loop.loop_s / (1.0 - gains.first_start(summary))
    start_ms, border_ms = waits.startup * whole_ms / epochs, waits.border * whole_ms / (epochs - 1)
    if border_ms > max(LATER * start_ms, making.wall_ms) and making.startup_ms is not None:
        share *= 1.0 - min(making.startup_ms / max(start_ms, 1e-9), 1.0)
    return gains.of_share(summary, share)


def _fix(summary: Summary) -> str:
    if summary.loader.get("persistent_workers"):
        return "Make the start cheaper: import fewer modules at module level, and open files and models at first use."
    return "persistent_workers=True reuses workers across epochs; import fewer modules at module level."


def _settings(summary: Summary) -> dict[str, Any] | None:
    worth_it = summary.loop.epochs > 1 and not summary.loader.get("persistent_workers")
    return {"persistent_workers": True} if worth_it else None


def _start_is_light(summary: Summary, _share: float) -> str | None:
    tried = summary.ladder.tried.get("persistent_workers=True")
    if tried is None or tried[0] < NO_SHORTER or tried[1] < SAME:
        return None
    return f"measured: with persistent workers, the first batch of an epoch takes {tried[0]:.2f} times as long"


CAUSE = Cause(
    Entry(
        code="worker_startup",
        verb="diagnose",
        title="each epoch waits for its workers to start",
        means="Without persistent_workers, torch's loader restarts its processes every epoch. If workers are "
        "spawned, each of them imports the script and all its imports.",
        recognised="Measures the first wait of each epoch, until the first worker receives its first task.",
        to_do="Reuse the workers across epochs, and make their start cheaper.",
        abstains="The workers were not observed.",
        example="2 epochs started 4 workers each; a worker takes 900 ms from its first line of code to its first task.",
    ),
    rules=(Rule(130, _evaluate),),
    fix=_fix,
    gain=_gain,
    settings=_settings,
    signals=(signals.WORKERS,),
    contradicted={"workers start quickly": _start_is_light},
)
