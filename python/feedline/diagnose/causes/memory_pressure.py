# SPDX-License-Identifier: Apache-2.0
"""Memory is short: pages are evicted from the page cache and read again."""

from __future__ import annotations

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import FEW_FAULTS, MUCH_KERNEL, NAMED
from feedline.findings import Entry
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Host, Summary


def _evaluate(analysis: Analysis) -> Found | None:
    host = analysis.summary.host
    if not host.memory_pressure or host.memory_pressure < NAMED or _is_of_others(host):
        return None
    share = min(max(host.memory_pressure, _of_reclaim(analysis)), analysis.production)
    evidence = [f"tasks waited for memory {host.memory_pressure:.0%} of the time"]
    if host.memory_events:
        evidence.append(f"the cgroup reached its memory limit {host.memory_events} times")
    if host.in_kernel is not None and host.in_kernel > MUCH_KERNEL:
        evidence.append(f"{host.in_kernel:.0%} of the workers' CPU time was spent in the kernel, which reclaims pages")
    if host.memory_bytes and host.memory_limit_bytes:
        of = host.memory_bytes / host.memory_limit_bytes
        evidence.append(f"the run's processes use {host.memory_bytes / 1e6:.0f} MB, {of:.0%} of the limit")
    analysis.take_waiting(share)
    return Found(share, 0.9 if host.memory_events else 0.7, evidence, needs=("pressure",))


def _is_of_others(host: Host) -> bool:
    """Whether the memory pressure, which the kernel reports for all programs, is caused by programs outside this
    run.
    """
    if host.memory_events or host.major_faults_per_s is None:
        return False
    return host.major_faults_per_s < FEW_FAULTS and (host.in_kernel or 0.0) <= MUCH_KERNEL


def _of_reclaim(analysis: Analysis) -> float:
    """Returns the share of the time lost to a cgroup's memory limit, spent on evicting pages and on reading them
    again.
    """
    host = analysis.summary.host
    if not host.memory_events:
        return 0.0
    waiting = analysis.stage_share("storage") * min(
        (host.memory_pressure or 0.0) / max(host.io_pressure or 0.0, 1e-9), 1.0
    )
    kernel = host.in_kernel or 0.0
    running = analysis.stage_share("decode", "transform", "python", "collate")
    return waiting + (running * kernel if kernel > MUCH_KERNEL else 0.0)


def _gain(summary: Summary, _share: float) -> Gain:
    """Returns the gain if pages stay cached: no data is read again, and the kernel does not reclaim pages."""
    running = gains.without_kernel(summary, prediction.batch_of(summary))
    return gains.of_batch(summary, gains.without_waiting(summary, running))


def _no_paging(summary: Summary, _share: float) -> str | None:
    host = summary.host
    if host.major_faults_per_s is None or host.major_faults_per_s >= FEW_FAULTS:
        return None
    if host.in_kernel is None or host.in_kernel > MUCH_KERNEL:
        return None
    return f"only {host.major_faults_per_s:.0f} pages per second were read again"


CAUSE = Cause(
    Entry(
        code="memory_pressure",
        verb="diagnose",
        title="pages are evicted and read again",
        means="At its memory limit, a group of processes evicts file pages that it still uses, reads the pages "
        "again, and spends CPU time on finding more pages to evict.",
        recognised="Measures memory pressure, how often the cgroup reached its limit, and the run's page faults, CPU "
        "time in the kernel and memory use (PSS).",
        to_do="Use less memory, or share data between workers.",
        abstains="The kernel reports no pressure (no PSI), or the run was too short. The pressure is caused by other "
        "programs.",
        example="tasks waited for memory 40 % of the time; the cgroup reached its memory limit 12 times.",
    ),
    rules=(Rule(120, _evaluate),),
    fix=Fix(
        "Use less memory: fewer workers, prefetch_factor=2, or data shared between workers (memory-mapped).",
        own="Use less memory: a smaller memory_budget, and a budget for .cache(...).",
    ),
    gain=_gain,
    signals=(signals.HOST, signals.PRESSURE),
    contradicted={"no pages are reread": _no_paging},
)
