# SPDX-License-Identifier: Apache-2.0
"""The training step itself limits the loop: no change to the loader will help."""

from __future__ import annotations

from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import CROWDED, IDLE_LOADER, LARGE, NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

LOW_UTILISATION = Threshold(0.5, "GPU-Util below which the text explains why the GPU waits")
SLOWER = Threshold(
    0.9, "fraction of the loop's rate; a loader that reaches less than this by itself cannot be waiting for the loop"
)


def _evaluate(analysis: Analysis) -> Found | None:
    summary, waits = analysis.summary, analysis.summary.waits
    crowded = summary.workers >= CROWDED * summary.host.cpus  # then the lack of CPUs is caused by the loader itself
    queued = analysis.unexplained + analysis.stretched
    loader = waits.loader - (0.0 if crowded else queued)
    if loader >= IDLE_LOADER:
        return None
    evidence = [
        f"next() waits {summary.loop.wait_ms:.2f} ms and the loop works {summary.loop.step_ms:.2f} ms per step",
        f"an infinitely fast loader would save {loader:.1%}",
    ]
    if summary.on_device.gpu is not None:
        waiting = ": the GPU mostly waits for Python code, kernel launches or .item() in the step"
        low = summary.on_device.gpu.utilisation < LOW_UTILISATION
        evidence.append(f"GPU-Util is {summary.on_device.gpu.utilisation:.0%}{waiting if low else ''}")
    confidence = 0.95 if loader < NAMED else 0.8
    against = []
    if analysis.named("straggling_rank"):
        against.append("a step also waits for the other ranks")
        confidence = 0.6
    if queued >= NAMED:
        against.append(
            f"finished batches spent {queued:.0%} of the time waiting for a CPU or a wake-up before the loop "
            "received them"
        )
        confidence = 0.8 if queued < LARGE else 0.6
    return Found(analysis.step, confidence, evidence, against, prediction.gain_of_share(loader, 0.0))


def _loader_is_slower(summary: Summary, _share: float) -> str | None:
    measured = summary.ladder.rung_intervals.get(summary.workers)
    if measured is None or summary.workers == 0 or not summary.loop.loop_s:
        return None
    pace = summary.loop.steps / summary.loop.loop_s
    if measured[1] >= SLOWER * pace:
        return None
    return f"measured: the loader reaches only {measured[1]:.1f} batches/s, but the loop consumed {pace:.1f}"


CAUSE = Cause(
    Entry(
        code="compute_bound",
        verb="diagnose",
        title="the loop's own work limits the rate; no change to the loader is needed",
        means="Batches are ready when the loop requests them, so a faster loader does not speed up the loop.",
        recognised="Reported if the loop waits less than 10 % of its time, not counting finished batches that "
        "wait for a CPU.",
        to_do="Leave the loader unchanged. `feedline trace` shows how the step uses the GPU.",
        example="next() waits 0.20 ms and the loop works 10.00 ms per step; an infinitely fast loader would save 2.0 "
        "%.",
    ),
    rules=(Rule(100, _evaluate),),
    fix=Fix("No change to the loader is needed: the loop's own work limits the rate."),
    contradicted={"the loader by itself is slower than the loop": _loader_is_slower},
    minds_others=False,
    is_fault=False,
)
