# SPDX-License-Identifier: Apache-2.0
"""Too many workers compete for the CPUs and wait for each other."""

from __future__ import annotations

from feedline.diagnose.rules import signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.fixes import is_slower
from feedline.diagnose.rules.shares import CROWDED, NAMED, SAME
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

DELAYED = Threshold(0.3, "share of the runnable time without a CPU above which workers compete for CPUs")
OWN_CPUS = Threshold(
    0.5,
    "fraction of the CPUs used by the run below which its workers mostly wait for other programs, if these are busy; "
    "they also do if other programs use more CPUs than the run",
)
LEAST = Threshold(0.1, "fraction of this cause's share that fewer workers save; the work itself remains")


def _evaluate(analysis: Analysis) -> Found | None:
    summary, making, host = analysis.summary, analysis.summary.making, analysis.summary.host
    delayed = making.delayed
    if delayed is None or delayed < DELAYED or summary.workers < CROWDED * host.cpus:
        return None
    if analysis.named("cpu_quota") and not host.limited_by_others:
        return None  # they wait for the quota
    running = analysis.stage_share("decode", "transform", "python", "collate")
    share = running * delayed + analysis.unexplained
    if share < NAMED:
        return None
    best = prediction.best_workers(summary, range(1, max(int(host.cpus), 1) + 1))
    evidence = [
        f"{summary.counted(summary.workers)} on {host.cpus:.3g} CPUs: the workers were runnable without a CPU "
        f"{delayed:.0%} of the time",
        f"{summary.counted(best)} can already use all of these CPUs",
    ]
    if host.limited_by_others and host.throttled is not None:
        evidence.append(
            f"the cgroup's quota of {host.quota_cpus:.2g} CPUs is not the limit: it stopped the run "
            f"{host.throttled:.0%} of the time"
        )
    against = ["fewer workers free CPUs and memory, but the work itself remains"]
    analysis.production -= running * delayed
    return Found(share, 0.92, evidence, against, (0.0, prediction.gain_of_share(share, LEAST)[0] + LEAST))


def _workers(summary: Summary) -> int | None:
    fewer = max(int(summary.host.cpus), 1)
    return None if is_slower(summary, fewer) else fewer


def _fix(summary: Summary) -> str:
    workers = _workers(summary)
    if workers is None:
        return "Keep the number of workers and add CPUs: fewer workers were measured to produce fewer batches."
    return f"Set num_workers={workers}, the number of usable CPUs."


def _fewer_are_slower(summary: Summary, _share: float) -> str | None:
    present = summary.ladder.rungs.get(summary.workers)
    fewer = {workers: rate for workers, rate in summary.ladder.rungs.items() if 1 <= workers < summary.workers}
    if not present or not fewer or max(fewer.values()) > SAME * present:
        return None
    best = max(fewer, key=lambda workers: fewer[workers])
    return f"measured, loader only: {summary.counted(best)} produced {fewer[best] / present:.2f} times as many batches"


def _others_use_the_cpus(summary: Summary, _share: float) -> str | None:
    host = summary.host
    if host.used_cpus is None or host.others_cpus is None or not host.contended:
        return None
    if host.used_cpus >= max(OWN_CPUS * host.cpus, host.others_cpus):
        return None
    return (
        f"the run used {host.used_cpus:.2f} of {host.cpus:.3g} CPUs and other programs used "
        f"{host.sharing * host.others_cpus:.1f}: the workers also waited for them"
    )


CAUSE = Cause(
    Entry(
        code="oversubscribed",
        verb="diagnose",
        title="three or more workers per CPU wait for each other",
        means="More workers than CPUs do not produce more batches. Additional workers use memory and evict each "
        "other's caches, and "
        "a nearly complete batch waits while other workers run.",
        recognised="Measures the run-queue delay, which is the time that workers are runnable without a CPU.",
        to_do="Use no more workers than CPUs.",
        abstains="The host's counters were not read, because the run was too short. Not reported together with a CPU "
        "quota that throttles the workers, unless other programs limit the run more than the quota does.",
        example="16 workers on 4 CPUs: the workers were runnable without a CPU 70 % of the time.",
    ),
    rules=(Rule(180, _evaluate),),
    fix=_fix,
    workers=_workers,
    signals=(signals.WORKERS, signals.PROCESSES, signals.HOST),
    contradicted={
        "fewer workers are slower": _fewer_are_slower,
        "workers wait for other programs": _others_use_the_cpus,
    },
)
