# SPDX-License-Identifier: Apache-2.0
"""Memory is short: pages are dropped and read again."""

from __future__ import annotations

from feedline.diagnose.judging import gains, signals
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Cause, Found, Gain, Rule
from feedline.diagnose.judging.fixes import Fix
from feedline.diagnose.judging.shares import FEW_FAULTS, MUCH_KERNEL, NAMED
from feedline.findings import Entry
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Host, Summary


def _books(case: Case) -> Found | None:
    host = case.summary.host
    if not host.memory_pressure or host.memory_pressure < NAMED or _is_of_others(host):
        return None
    share = min(max(host.memory_pressure, _of_reclaim(case)), case.production)
    evidence = [f"tasks waited for memory in {host.memory_pressure:.0%} of the time"]
    if host.memory_events:
        evidence.append(f"the cgroup was at its limit {host.memory_events} times")
    if host.in_kernel is not None and host.in_kernel > MUCH_KERNEL:
        evidence.append(f"{host.in_kernel:.0%} of the workers' CPU went to the kernel, which looks for free pages")
    if host.memory_bytes and host.memory_limit_bytes:
        of = host.memory_bytes / host.memory_limit_bytes
        evidence.append(f"the run's processes take {host.memory_bytes / 1e6:.0f} MB, {of:.0%} of the limit")
    case.take_waiting(share)
    return Found(share, 0.9 if host.memory_events else 0.7, evidence, needs=("pressure",))


def _is_of_others(host: Host) -> bool:
    """The kernel tells the pressure on all programs, others too, in groups of their own that are at a limit."""
    if host.memory_events or host.major_faults_per_s is None:
        return False
    return host.major_faults_per_s < FEW_FAULTS and (host.in_kernel or 0.0) <= MUCH_KERNEL


def _of_reclaim(case: Case) -> float:
    """At a group's limit: reading again what was dropped, and the CPU of dropping it."""
    host = case.summary.host
    if not host.memory_events:
        return 0.0
    waiting = case.stage_share("storage") * min((host.memory_pressure or 0.0) / max(host.io_pressure or 0.0, 1e-9), 1.0)
    kernel = host.in_kernel or 0.0
    running = case.stage_share("decode", "transform", "python", "collate")
    return waiting + (running * kernel if kernel > MUCH_KERNEL else 0.0)


def _gain(summary: Summary, _share: float) -> Gain:
    """Pages stay: nothing is read again, and the kernel does not look for pages to drop."""
    running = gains.without_kernel(summary, prediction.batch_of(summary))
    return gains.of_batch(summary, gains.without_waiting(summary, running))


def _no_paging(summary: Summary, _share: float) -> str | None:
    host = summary.host
    if host.major_faults_per_s is None or host.major_faults_per_s >= FEW_FAULTS:
        return None
    if host.in_kernel is None or host.in_kernel > MUCH_KERNEL:
        return None
    return f"only {host.major_faults_per_s:.0f} pages per second had to be read again"


CAUSE = Cause(
    Entry(
        code="memory_pressure",
        verb="diagnose",
        title="pages are dropped and read again",
        means="At the limit of its memory a group of processes gives up pages of files that it still uses, reads them "
        "again, and spends CPU on finding others to give up.",
        recognised="Memory pressure, the cgroup's limit met or the run's own page faults, CPU spent in the kernel, "
        "proportional memory.",
        to_do="Hold less at a time, or share what workers hold.",
        abstains="The kernel tells no pressure (no PSI), or the run was too short. Pressure on other programs is not "
        "this run's.",
        example="tasks waited for memory in 40 % of the time; the cgroup was at its limit 12 times.",
    ),
    rules=(Rule(120, _books),),
    fix=Fix(
        "Hold less: fewer workers, prefetch_factor=2, data shared between workers (memory-mapped).",
        own="Hold less: a smaller memory_budget, and a budget for .cache(...).",
    ),
    gain=_gain,
    signals=(signals.HOST, signals.PRESSURE),
    contradicted={"nothing is paged": _no_paging},
)
