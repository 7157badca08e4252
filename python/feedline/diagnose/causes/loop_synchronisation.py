# SPDX-License-Identifier: Apache-2.0
"""The step repeatedly synchronizes with the device to read values, and the device is idle in between."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.copies import TRACE
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import NAMED, UNCERTAIN
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

AGAIN = Threshold(2, "minimum number of calls per step: a single call waits only for the step's own work")


def _evaluate(analysis: Analysis) -> Found | None:
    summary = analysis.summary
    calls, share = summary.loop.synchronising_calls or 0.0, analysis.step * min(summary.loop.synchronising or 0.0, 1.0)
    if share < NAMED:
        return None
    evidence = [
        f"{calls:.0f} calls to .item() or .tolist() per step, and the code between them, take "
        f"{summary.loop.synchronising or 0:.0%} of its time"
    ]
    against: list[str] = []
    confidence = 0.92 if calls >= AGAIN else 0.7
    if summary.uses_device:
        idle = idle_share(summary)
        share, confidence = min(share, 1.0 if idle is None else idle), 0.6
        if share < NAMED or (idle is None and calls < AGAIN):  # a single call: see _unseen
            return None
        if idle is None:
            against.append("on a GPU, such a call also waits for the step's own work")
        else:
            confidence = UNCERTAIN if calls >= AGAIN else 0.6
            evidence.append(f"the GPU was idle for {idle:.0%} of the time, not counting waits for the loader")
    analysis.step -= share
    return Found(share, confidence, evidence, against)


def idle_share(summary: Summary) -> float | None:
    """Returns a lower bound on the share of the loop's time in which the GPU is idle for reasons other than the loader.

    Returns None if there is no GPU data. GPU-Util counts the GPU as busy whenever any kernel runs, so the estimate
    never overstates idle time.
    """
    if summary.on_device.gpu is None:
        return None
    return max(1.0 - summary.on_device.gpu.utilisation - summary.waits.loader, 0.0)


def _gain(summary: Summary, share: float) -> Gain:
    """Returns the gain if the step made no synchronising calls and the loader ran at its own measured rate."""
    batch, gone = prediction.batch_of(summary), share * prediction.current_ms(summary)
    step = max(batch.step - gone, 0.0)
    measured, modelled = summary.ladder.rungs.get(summary.workers), prediction.loader_rate(summary, summary.workers)
    if measured and modelled:
        batch = prediction.with_loader_taking(batch, modelled / measured)
    return gains.of_batch(summary, replace(batch, step=step, step_cpu=min(batch.step_cpu, step)))


def _unseen(summary: Summary) -> str | None:
    calls = summary.loop.synchronising_calls or 0.0
    if not summary.uses_device or summary.on_device.gpu is not None or not 0.0 < calls < AGAIN:
        return None
    if (summary.loop.synchronising or 0.0) < NAMED:
        return None
    return (
        "a single .item() call per step waits for the step's own work, and the idle time of the device afterwards was "
        f"not observed; {TRACE}"
    )


CAUSE = Cause(
    Entry(
        code="loop_synchronisation",
        verb="diagnose",
        title="repeated `.item()` or `.tolist()` calls in a step",
        means="Each call waits until the device has finished all queued work, and then the device waits until the "
        "loop has queued more work, so host and device never work at the same time.",
        recognised="Counts the calls in some of the steps, and measures the time from the first to the last call. On "
        "a GPU, the share is "
        "limited to the idle time reported by NVML that is not spent waiting for the loader.",
        to_do="Keep values as tensors, and read them only every few steps.",
        abstains="The steps were not watched, as with torch.compile. A single call per step waits for the step's own "
        "work; only a trace shows how long the GPU is idle afterwards.",
        example="500 calls to .item() or .tolist() per step, and the code between them, take 60 % of the loop's time.",
    ),
    rules=(Rule(40, _evaluate),),
    fix=Fix("Keep values as tensors and read them every few steps: sum on the device, one .item() per log line."),
    gain=_gain,
    signals=(signals.SYNCHRONISING,),
    unseen=_unseen,
)
