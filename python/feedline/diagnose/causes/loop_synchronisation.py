# SPDX-License-Identifier: Apache-2.0
"""The step asks the device for values again and again, and the device has nothing to do meanwhile."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.judging import gains, signals
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Cause, Found, Gain, Rule
from feedline.diagnose.judging.copies import TRACE
from feedline.diagnose.judging.fixes import Fix
from feedline.diagnose.judging.shares import NAMED, UNCERTAIN
from feedline.findings import Entry, Threshold
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Summary

AGAIN = Threshold(2, "calls per step: one waits for the step's work, which is needed anyway")


def _books(case: Case) -> Found | None:
    summary = case.summary
    calls, share = summary.loop.synchronising_calls or 0.0, case.step * min(summary.loop.synchronising or 0.0, 1.0)
    if share < NAMED:
        return None
    evidence = [
        f"{calls:.0f} calls of .item() or .tolist() per step, and what lies between them, take "
        f"{summary.loop.synchronising or 0:.0%} of its time"
    ]
    against: list[str] = []
    confidence = 0.92 if calls >= AGAIN else 0.7
    if summary.uses_device:
        idle = idle_share(summary)
        share, confidence = min(share, 1.0 if idle is None else idle), 0.6
        if share < NAMED or (idle is None and calls < AGAIN):  # one call waits for the step's work; _unseen says so
            return None
        if idle is None:
            against.append("on a GPU such a call also waits for work that is needed anyway")
        else:
            confidence = UNCERTAIN if calls >= AGAIN else 0.6
            evidence.append(f"the GPU was idle for {idle:.0%} of the time beyond the waits for the loader")
    case.step -= share
    return Found(share, confidence, evidence, against)


def idle_share(summary: Summary) -> float | None:
    """At least so much of the loop's time the GPU was idle without the loader's doing. None: nobody knows.

    GPU-Util counts a moment as busy in which any kernel runs, so what it calls idle was idle.
    """
    if summary.on_device.gpu is None:
        return None
    return max(1.0 - summary.on_device.gpu.utilisation - summary.waits.loader, 0.0)


def _gain(summary: Summary, share: float) -> Gain:
    """A step without the calls that take this share of the time, and the loader at the pace that was measured alone."""
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
        "one call of .item() per step waits for work that is needed anyway, and how long the device was idle "
        f"behind it was not seen; {TRACE}"
    )


CAUSE = Cause(
    Entry(
        code="loop_synchronisation",
        verb="diagnose",
        title="`.item()` or `.tolist()` again and again inside a step",
        means="Each such call waits until the device has done all that was queued, and the device then waits until the "
        "loop has queued more. Neither works while the other does.",
        recognised="Calls are counted in some of the steps, with the time from the first to the last. On a GPU only as "
        "much is booked as NVML calls idle beyond the waits for the loader.",
        to_do="Keep values as tensors, and read them every some steps.",
        abstains="Steps were not watched, as with torch.compile. One call per step waits for the step's own work, and "
        "how long the GPU was idle behind it only a trace shows.",
        example="500 calls of .item() or .tolist() per step, and what lies between them, take 60 % of its time.",
    ),
    rules=(Rule(40, _books),),
    fix=Fix("Keep values as tensors and read them every some steps: sum on the device, one .item() per log line."),
    gain=_gain,
    signals=(signals.SYNCHRONISING,),
    unseen=_unseen,
)
