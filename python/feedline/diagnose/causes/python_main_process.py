# SPDX-License-Identifier: Apache-2.0
"""The loop's own process produces the batches between steps, or spends too long drawing the sample order."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.rules import contradictions, gains, idle_waits, signals
from feedline.diagnose.rules.analysis import Analysis, gain_of_workers, stage_sentence
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.fixes import drop_in_may_help, with_workers
from feedline.diagnose.rules.shares import LARGE, NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

ONE_CPU = Threshold(0.9, "load of a single CPU above which it has no time for another process")
CPUS_FOR_TWO = Threshold(2, "minimum number of usable CPUs to run a loop and a worker at the same time")
MOSTLY_WAITING = Threshold(
    0.5, "share of a batch's production time spent waiting, above which threads help as much as processes"
)
USEFUL = Threshold(0.95, "fraction of the current cycle time above which a change is not an improvement")
MOST_DELAYED = Threshold(0.9, "maximum share of the time in next() that is attributed to waits for a CPU")
_MOST_TRIED = 17  # exclusive maximum of the numbers of workers considered


def _draws(analysis: Analysis) -> Found | None:
    """Reports the CPU time of next() in the loop's process, where samplers run even with workers."""
    summary = analysis.summary
    cycle = max(prediction.current_ms(summary), 1e-9)
    own = summary.making.next_cpu_ms / cycle
    # next() takes longer while it waits for a CPU, unless all of the run's processes are throttled
    delayed = 0.0 if _is_throttled(summary) else min(summary.host.step_delayed or 0.0, MOST_DELAYED)
    share = min(own / (1 - delayed), analysis.handover + analysis.production)
    if summary.workers == 0 or summary.native or min(share, own) < NAMED:
        return None
    evidence = [
        f"next() itself takes {summary.making.next_cpu_ms:.1f} ms of CPU per batch in the loop's process, excluding "
        "unpickling: this includes samplers and batch samplers"
    ]
    analysis.handover, late = max(analysis.handover - share, 0.0), max(share - analysis.handover, 0.0)
    analysis.production -= late
    return Found(share, 0.9 if own >= LARGE / 2 else 0.75, evidence)


def _is_throttled(summary: Summary) -> bool:
    return (summary.host.throttled or 0.0) >= NAMED


def _makes(analysis: Analysis) -> Found | None:
    """Reports the production of all batches in the loop's process (num_workers=0)."""
    summary, host = analysis.summary, analysis.summary.host
    if summary.workers > 0 or summary.loader.get("native") or analysis.production < NAMED:
        return None
    best = prediction.advised_workers(summary, range(1, _MOST_TRIED))
    cycle = prediction.cycle_ms(summary, best or 1)
    waits = analysis.stages.get("storage", 0.0)
    if cycle > ONE_CPU * (summary.loop.step_ms + summary.making.wall_ms) and host.cpus < CPUS_FOR_TWO:
        return None  # the only CPU is fully used, so another process could not run
    evidence = [
        f"num_workers=0: next() produces each batch itself in {summary.loop.wait_ms:.1f} ms while the loop waits",
        stage_sentence(analysis.summary.making.stages),
    ]
    against = [] if waits < MOSTLY_WAITING else ["most of this time is spent waiting, which threads would hide as well"]
    evidence += idle_waits.sentences(summary.making.waited_for if waits >= NAMED else None)
    confidence = 0.95 if host.cpus >= CPUS_FOR_TWO else 0.8
    known = (
        "were not shown to help the loop" if prediction.some_are_better(summary) else "did not improve it in this run"
    )
    gain, doubts = (0.0, 0.0), [f"measured, loader only: workers {known}"]
    if best is not None:
        gain, doubts = gain_of_workers(summary, best)
    if best is None or (best in summary.ladder.rungs and cycle > USEFUL * prediction.cycle_ms(summary, 0)):
        confidence = 0.6
    share, analysis.production = analysis.production, 0.0
    return Found(share, confidence, evidence, [*against, *doubts], gain, needs=("stages",))


def _workers(summary: Summary) -> int | None:
    if summary.workers > 0:
        return None
    return prediction.advised_workers(summary, range(summary.workers + 1, 65))


def _fix(summary: Summary) -> str:
    if summary.workers > 0:
        return "Draw the whole order before the epoch starts (as a list of batches), or make the sampler cheaper."
    workers, drop_in = _workers(summary), _drop_in(summary)
    if workers is not None:
        return with_workers(workers, drop_in)
    known = "not shown to help" if prediction.some_are_better(summary) else "measured not to help"
    own = f"Make loading cheaper in the loop's process: workers were {known}."
    return f"{own} {drop_in}".rstrip()


def _drop_in(summary: Summary) -> str:
    if not drop_in_may_help(summary):
        return ""
    return "Or `from feedline import DataLoader`: native threads read the datasets that it supports."


def _gain(summary: Summary, _share: float) -> Gain:
    """Returns the gain if next() draws no samples."""
    return gains.of_batch(summary, replace(prediction.batch_of(summary), drawing=0.0))


def _more_gain_nothing(summary: Summary, share: float) -> str | None:
    return None if summary.workers else contradictions.more_gain_nothing(summary, share)


CAUSE = Cause(
    Entry(
        code="python_main_process",
        verb="diagnose",
        title="with `num_workers=0`, batches are produced between steps; or `next()` runs a slow sampler, with any "
        "number of workers",
        means="While the loop's process produces a batch, it does not train, and vice versa. A sampler "
        "runs in that process even if workers produce the batches.",
        recognised="Without workers, checks for idle CPUs or waiting; with workers, measures the loop "
        "thread's CPU time "
        "in `next()` "
        "excluding unpickling.",
        to_do="Use as many workers as were measured or predicted to help; or Feedline's loader, if it supports the "
        "dataset. For a sampler, draw the whole order before the epoch.",
        abstains="Not reported if the only CPU is fully used, as another process could not run.",
        example="num_workers=0: next() produces each batch itself in 40.0 ms while the loop waits.",
    ),
    rules=(Rule(70, _draws), Rule(170, _makes)),
    fix=_fix,
    gain=_gain,  # the rule itself computes the gain from workers
    drop_in=lambda summary: summary.workers == 0 and drop_in_may_help(summary),  # samplers run in Python in any loader
    workers=_workers,
    signals=(signals.WORKERS,),
    contradicted={"more workers do not help": _more_gain_nothing},
    collects_garbage=True,
)
