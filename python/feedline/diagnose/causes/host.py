# SPDX-License-Identifier: Apache-2.0
"""Limits of the machine or of its container."""

from __future__ import annotations

from feedline.diagnose.causes.case import NAMED, Case, normalise

_FULL = 0.9  # of /dev/shm


def quota(case: Case) -> None:
    host = case.summary.host
    if not host.throttled or host.throttled < NAMED:
        return
    share = min(host.throttled, case.production)
    quota = f" of {host.quota_cpus:.2g} CPUs" if host.quota_cpus else ""
    evidence = [f"the cgroup's quota{quota} stopped its processes for {host.throttled:.0%} of the time"]
    if host.used_cpus is not None and host.quota_cpus:
        evidence.append(f"the run used {host.used_cpus:.2f} CPUs")
    _take_waiting(case, share)
    case.name("cpu_quota", share, 0.9, evidence)


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
    if not host.memory_pressure or host.memory_pressure < NAMED:
        return
    share = min(host.memory_pressure, case.production)
    evidence = [f"tasks waited for memory in {host.memory_pressure:.0%} of the time"]
    if host.memory_events:
        evidence.append(f"the cgroup was at its limit {host.memory_events} times")
    if host.memory_bytes and host.memory_limit_bytes:
        of = host.memory_bytes / host.memory_limit_bytes
        evidence.append(f"the run's processes take {host.memory_bytes / 1e6:.0f} MB, {of:.0%} of the limit")
    _take_waiting(case, share)
    case.name("memory_pressure", share, 0.9 if host.memory_events else 0.7, evidence)


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
