# SPDX-License-Identifier: Apache-2.0
"""Limits of the machine or of its container."""

from __future__ import annotations

from feedline.diagnose.causes.case import NAMED, Case


def quota(case: Case) -> None:
    host = case.summary.host
    if not host.throttled or host.throttled < NAMED:
        return
    share = min(host.throttled, case.production)
    quota = f" of {host.quota_cpus:.2g} CPUs" if host.quota_cpus else ""
    evidence = [f"the cgroup's quota{quota} stopped its processes for {host.throttled:.0%} of the time"]
    case.production -= share
    case.name("cpu_quota", share, 0.9, evidence)


def memory(case: Case) -> None:
    host = case.summary.host
    if not host.memory_pressure or host.memory_pressure < NAMED:
        return
    share = min(host.memory_pressure, case.production)
    evidence = [f"tasks waited for memory in {host.memory_pressure:.0%} of the time"]
    if host.memory_events:
        evidence.append(f"the cgroup was at its limit {host.memory_events} times")
    case.production -= share
    case.name("memory_pressure", share, 0.9 if host.memory_events else 0.7, evidence)


def shared_memory(case: Case) -> None:
    used = case.summary.host.shared_memory_used
    if used is None or used < 0.9:
        return
    share, case.handover = case.handover, 0.0
    if share < NAMED:  # it may stop the run at any time, whatever it costs now
        share = min(NAMED, case.step)
        case.step -= share
    evidence = [f"/dev/shm, through which workers hand over tensors, was {used:.0%} full"]
    case.name("shared_memory_limit", share, 0.7, evidence)
