# SPDX-License-Identifier: Apache-2.0
"""The container's CPU limit throttles the workers."""

from __future__ import annotations

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.contradictions import gain_of_more
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import DOUBTFUL, HELPS, NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Host, Summary

SPENT = Threshold(0.8, "fraction of the quota in use above which every wait for a CPU is attributed to the quota")
UNSPENT = Threshold(
    0.5, "fraction of the quota used by the whole run below which the quota does not limit sustained work"
)


def _evaluate(analysis: Analysis) -> Found | None:
    host, delayed = analysis.summary.host, analysis.summary.making.delayed
    if not host.throttled or host.throttled < NAMED:
        return None
    part, used, limit = host.throttled, host.ranks * (host.used_cpus or 0.0), host.quota_cpus or 0.0
    spent = bool(limit) and used > SPENT * limit and not host.limited_by_others
    if spent:  # every wait for a CPU is then a wait for the quota, whether throttled or queued
        part = max(part, delayed or 0.0)
    part = min(part, 1.0)
    share = part * (analysis.production + analysis.unexplained)
    quota = f" of {host.quota_cpus:.2g} CPUs" if host.quota_cpus else ""
    evidence = [f"the cgroup's quota{quota} throttled its processes for {host.throttled:.0%} of the time"]
    if host.used_cpus is not None and host.quota_cpus:
        evidence.append(f"the run used {host.ranks * host.used_cpus:.2f} CPUs")
    if spent and delayed:
        evidence.append(f"workers were runnable without a CPU for {delayed:.0%} of the time")
    analysis.unexplained *= 1 - part
    analysis.take_waiting(part * analysis.production)
    if not host.limited_by_others:
        return Found(share, 0.9, evidence, needs=("throttled",))
    against = [
        f"other programs limit the run more: they used {host.sharing * (host.others_cpus or 0.0):.1f} CPUs, and the "
        f"run {used / limit:.0%} of its quota"
    ]
    return Found(share, DOUBTFUL, evidence, against, (0.0, _gain_next_to_others(host)), needs=("throttled",))


def _gain(summary: Summary, _share: float) -> Gain:
    """Returns the gain if no process has to wait for a CPU; from the time that the quota stopped the run, if other
    programs continue to use the CPUs.
    """
    low, high = gains.of_batch(summary, prediction.batch_of(summary), cpus=summary.workers + 1.0)
    return (min(low, _gain_next_to_others(summary.host)) if summary.host.contended else low), high


def _gain_next_to_others(host: Host) -> float:
    return 1 / (1 - min(host.throttled or 0.0, 0.99)) - 1


def _has_room(summary: Summary, _share: float) -> str | None:
    host, gain = summary.host, gain_of_more(summary)
    if gain is not None and gain[1] >= HELPS and gain[2] > 1:
        return f"measured: {summary.counted(gain[0])} produce {gain[1]:.2f} times as many batches within the same quota"
    if host.quota_cpus and host.used_cpus is not None and host.used_cpus < UNSPENT * host.quota_cpus:
        return f"the run used {host.used_cpus:.2f} of the {host.quota_cpus:.2g} CPUs of the quota"
    return None


CAUSE = Cause(
    Entry(
        code="cpu_quota",
        verb="diagnose",
        title="the container's CPU limit throttles the workers",
        means="A quota limits the CPU time of a group of processes in each period of 100 ms, and stops all of them "
        "for the rest of the period, even if CPUs are idle. CPU affinity does not show the quota.",
        recognised="Measures the throttling of the script's cgroup and, if the quota is used up, every wait for a CPU. "
        "The finding is uncertain if other programs keep the run from using up its quota.",
        to_do="Raise the limit, or use no more workers than the quota has CPUs.",
        abstains="The cgroup's cpu.stat cannot be read, or the run was too short.",
        example="the cgroup's quota of 1.5 CPUs throttled its processes for 50 % of the time.",
    ),
    rules=(Rule(110, _evaluate),),
    fix=Fix(
        "Raise the container's CPU limit, or use no more workers than the quota has CPUs.",
        own="Raise the container's CPU limit; until then, set num_workers to at most the number of CPUs in the quota.",
    ),
    gain=_gain,
    signals=(signals.HOST, signals.THROTTLED),
    contradicted={"the quota was not used up": _has_room},
)
