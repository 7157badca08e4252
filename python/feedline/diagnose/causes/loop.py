# SPDX-License-Identifier: Apache-2.0
"""The loop itself: what it does, what it waits for, and the other ranks."""

from __future__ import annotations

from feedline.diagnose.causes import gpu
from feedline.diagnose.causes.case import CROWDED, IDLE_LOADER, NAMED, Case
from feedline.diagnose.causes.certainty import LARGE, UNCERTAIN
from feedline.watching.model import prediction


def compute_bound(case: Case) -> None:
    summary, waits = case.summary, case.summary.waits
    crowded = summary.workers >= CROWDED * summary.host.cpus  # then the lack of CPUs is the loader's own doing
    queued = case.unexplained + case.stretched
    loader = waits.loader - (0.0 if crowded else queued)
    if loader >= IDLE_LOADER:
        return
    evidence = [
        f"next() waits {summary.wait_ms:.2f} ms, the loop works {summary.step_ms:.2f} ms per step",
        f"a perfect loader would save {loader:.1%}",
    ]
    if summary.gpu is not None:
        waiting = ": most of the time it waits for the step's own Python, launches or .item()"
        evidence.append(f"GPU-Util is {summary.gpu.utilisation:.0%}{waiting if summary.gpu.utilisation < 0.5 else ''}")
    share = case.step
    confidence = 0.95 if loader < NAMED else 0.8
    counter = []
    if any(verdict.cause == "straggling_rank" for verdict in case.verdicts):
        counter.append("a step also waits for the other ranks")
        confidence = 0.6
    if queued >= NAMED:
        counter.append(f"{queued:.0%} of the time, finished batches waited for a CPU or a wake-up to hand them over")
        confidence = 0.8 if queued < LARGE else 0.6
    case.name("compute_bound", share, confidence, evidence, counter, prediction.gain_of_share(loader, 0.0))


def synchronisation(case: Case) -> None:
    summary = case.summary
    calls, share = summary.synchronising_calls or 0.0, case.step * min(summary.synchronising or 0.0, 1.0)
    if share < NAMED:
        return
    evidence = [
        f"{calls:.0f} calls of .item() or .tolist() per step, and what lies between them, take "
        f"{summary.synchronising or 0:.0%} of its time"
    ]
    counter = []
    confidence = 0.92 if calls >= 2 else 0.7
    if summary.uses_device:
        idle = gpu.idle_share(summary)
        share, confidence = min(share, 1.0 if idle is None else idle), 0.6
        if share < NAMED or (idle is None and calls < 2):  # one call waits for the step's work; gpu.abstentions says so
            return
        if idle is None:
            counter.append("on a GPU such a call also waits for work that is needed anyway")
        else:
            confidence = UNCERTAIN if calls >= 2 else 0.6
            evidence.append(f"the GPU was idle for {idle:.0%} of the time beyond the waits for the loader")
    case.step -= share
    case.name("loop_synchronisation", share, confidence, evidence, counter)


def ranks(case: Case) -> None:
    ranks = case.summary.ranks
    if len(ranks) < 2 or case.summary.ranks_alike:
        return
    others = sorted(ranks)[: len(ranks) - 1]
    slowest, usual = max(ranks), others[len(others) // 2]
    share = min(slowest - usual, max(case.step, 0.0))
    if share < IDLE_LOADER:
        return
    evidence = [f"rank {ranks.index(slowest)} waits {slowest:.0%} of its time for data, the others {usual:.0%}"]
    case.step -= share
    case.name("straggling_rank", share, 0.8, evidence)
