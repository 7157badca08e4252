# SPDX-License-Identifier: Apache-2.0
"""Workers are always busy, but some CPUs are idle."""

from __future__ import annotations

from feedline.diagnose.rules import contradictions, signals
from feedline.diagnose.rules.analysis import Analysis, gain_of_workers
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.certainty import CPU_OF_PAGING
from feedline.diagnose.rules.fixes import drop_in_may_help, with_workers
from feedline.diagnose.rules.shares import HELPS, NAMED, UNCERTAIN
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

BUSY_WORKERS = Threshold(
    0.7, "minimum share of time in which workers are busy; if they are less busy, more workers would also wait"
)
FREE_CPUS = Threshold(0.75, "fraction of the usable CPUs needed by the run above which another worker is not useful")


def _evaluate(analysis: Analysis) -> Found | None:
    summary, making, host = analysis.summary, analysis.summary.making, analysis.summary.host
    share = analysis.stage_share("decode", "transform", "python")
    if summary.workers == 0 or share < NAMED or (making.busy is not None and making.busy < BUSY_WORKERS):
        return None
    wanted = _wanted_cpus(summary)
    if wanted is None or wanted > FREE_CPUS * host.cpus:
        return None
    if prediction.best_workers(prediction.without_rungs(summary)) <= summary.workers:
        return None
    evidence = [
        f"{summary.counted(summary.workers)} busy {making.busy or 0:.0%} of the time",
        f"the run needed {wanted:.1f} of {host.cpus:.3g} CPUs, so more workers can run",
    ]
    confidence = 0.92
    more = {workers: rate for workers, rate in summary.ladder.rungs.items() if workers > summary.workers}
    if more and summary.workers in summary.ladder.rungs:
        ratio = max(more.values()) / max(summary.ladder.rungs[summary.workers], 1e-9)
        if ratio < HELPS:
            return None  # measured not to help: the work itself is the cost
        shown = prediction.best_workers(summary, {summary.workers, *more}) > summary.workers
        confidence = 0.95 if shown else UNCERTAIN
        measured = "" if shown else ", but the intervals overlap"
        evidence.append(
            f"measured without the training step: {ratio:.2f} times as many batches with more workers{measured}"
        )
    elif prediction.memory_is_short(host):
        return None
    best = _workers(summary)
    if best is None:
        return None
    gain, against = gain_of_workers(summary, best)
    # running code is explained; storage and collation remain of production
    analysis.keep_stages("storage", "collate")
    return Found(share, confidence, evidence, against, gain, needs=("stages", "processes"))


def _wanted_cpus(summary: Summary) -> float | None:
    """Returns the CPUs that the run needed; if other programs kept it waiting for CPUs, those that it would need
    without them.
    """
    host, making = summary.host, summary.making
    if host.wanted_cpus is None or not host.contended:
        return host.wanted_cpus
    batch = making.cpu_ms + making.pickle_ms + making.unpickle_ms + making.next_cpu_ms + summary.loop.step_cpu_ms
    alone = batch / max(prediction.cycle_ms(prediction.without_rungs(summary), summary.workers), 1e-9)
    return min(host.wanted_cpus, alone)


def _workers(summary: Summary) -> int | None:
    return prediction.advised_workers(summary, range(summary.workers + 1, 65))


CAUSE = Cause(
    Entry(
        code="too_few_workers",
        verb="diagnose",
        title="workers are always busy, but CPUs are idle",
        means="The workers are always busy, and the machine could run more workers.",
        recognised="Measures the share of time in which workers have a task, the CPUs that the run needed, and the "
        "rates by number of workers.",
        to_do="Use the suggested number of workers.",
        abstains="The host's counters were not read, because the run was too short. If memory is short, more workers "
        "are "
        "suggested only if they were measured to help.",
        example="2 workers busy 95 % of the time; the run needed 2.1 of 4 CPUs, so more workers can run.",
    ),
    rules=(Rule(190, _evaluate),),
    fix=lambda summary: with_workers(_workers(summary), ""),
    workers=_workers,
    drop_in=drop_in_may_help,
    signals=(signals.WORKERS, signals.PROCESSES, signals.HOST),
    contradicted={"more workers do not help": contradictions.more_gain_nothing},
    paging_instead=CPU_OF_PAGING,
)
