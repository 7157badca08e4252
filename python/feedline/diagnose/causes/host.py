# SPDX-License-Identifier: Apache-2.0
"""Limits of the machine or of its container."""

from __future__ import annotations

from feedline.diagnose.causes.case import NAMED, Case, normalise
from feedline.watching.summary.figures import Host

_FULL = 0.9  # of /dev/shm
_MUCH_KERNEL = 0.3  # of the CPU: more than reading and handing over take
_SPENT = 0.8  # of the quota
_FEW_FAULTS = 20.0  # per second: pages of programs that start, and not of one that has too little memory


def quota(case: Case) -> None:
    host, delayed = case.summary.host, case.summary.making.delayed
    if not host.throttled or host.throttled < NAMED:
        return
    part = host.throttled
    spent = bool(host.quota_cpus) and host.ranks * (host.used_cpus or 0.0) > _SPENT * (host.quota_cpus or 0.0)
    if spent:  # then whatever waits for a CPU waits for the quota, stopped or in turn
        part = max(part, delayed or 0.0)
    part = min(part, 1.0)
    share = part * (case.production + case.unexplained)
    quota = f" of {host.quota_cpus:.2g} CPUs" if host.quota_cpus else ""
    evidence = [f"the cgroup's quota{quota} stopped its processes for {host.throttled:.0%} of the time"]
    if host.used_cpus is not None and host.quota_cpus:
        evidence.append(f"the run used {host.ranks * host.used_cpus:.2f} CPUs")
    if spent and delayed:
        evidence.append(f"ready to run, workers waited {delayed:.0%} of the time")
    case.unexplained *= 1 - part
    _take_waiting(case, part * case.production)
    case.name("cpu_quota", share, 0.9, evidence, needs=("throttled",))


def _take_waiting(case: Case, share: float) -> None:
    """A stopped task waits without CPU, as one that reads does: the share is taken from there first."""
    waiting = case.stage_share("storage")
    left = {name: part * case.production for name, part in case.stages.items()}
    if waiting > 0:
        left["storage"] = max(waiting - share, 0.0)
    case.production = max(case.production - share, 0.0)
    case.stages = left
    normalise(case)


def memory(case: Case) -> None:
    host = case.summary.host
    if not host.memory_pressure or host.memory_pressure < NAMED or _is_of_others(host):
        return
    share = min(max(host.memory_pressure, _of_reclaim(case)), case.production)
    evidence = [f"tasks waited for memory in {host.memory_pressure:.0%} of the time"]
    if host.memory_events:
        evidence.append(f"the cgroup was at its limit {host.memory_events} times")
    if host.in_kernel is not None and host.in_kernel > _MUCH_KERNEL:
        evidence.append(f"{host.in_kernel:.0%} of the workers' CPU went to the kernel, which looks for free pages")
    if host.memory_bytes and host.memory_limit_bytes:
        of = host.memory_bytes / host.memory_limit_bytes
        evidence.append(f"the run's processes take {host.memory_bytes / 1e6:.0f} MB, {of:.0%} of the limit")
    _take_waiting(case, share)
    case.name("memory_pressure", share, 0.9 if host.memory_events else 0.7, evidence, needs=("pressure",))


def _is_of_others(host: Host) -> bool:
    """The kernel tells the pressure on all programs, others too, in groups of their own that are at a limit."""
    if host.memory_events or host.major_faults_per_s is None:
        return False
    return host.major_faults_per_s < _FEW_FAULTS and (host.in_kernel or 0.0) <= _MUCH_KERNEL


def _of_reclaim(case: Case) -> float:
    """At a group's limit: reading again what was let go, and the CPU of letting go."""
    host = case.summary.host
    if not host.memory_events:
        return 0.0
    waiting = case.stage_share("storage") * min((host.memory_pressure or 0.0) / max(host.io_pressure or 0.0, 1e-9), 1.0)
    kernel = host.in_kernel or 0.0
    running = case.stage_share("decode", "transform", "python", "collate")
    return waiting + (running * kernel if kernel > _MUCH_KERNEL else 0.0)


def shared_memory(case: Case) -> None:
    used = case.summary.host.shared_memory_used
    if used is None or used < _FULL:
        return
    share, case.handover = case.handover, 0.0
    if share < NAMED:  # it may stop the run at any time, whatever it costs now
        share = min(NAMED, case.step)
        case.step -= share
    evidence = [f"/dev/shm, through which workers hand over tensors, was {used:.0%} full"]
    case.name("shared_memory_limit", share, 0.7, evidence)
