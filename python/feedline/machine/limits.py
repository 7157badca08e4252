# SPDX-License-Identifier: Apache-2.0
"""CPU and memory limits of this process, read by the engine, and this rank's share of them."""

from __future__ import annotations

import os
import resource

from feedline import _engine


def usable_cpus() -> int:
    """Number of threads that this process, together with other ranks on the same CPUs, can run concurrently."""
    return _engine.cpu_limits().threads


def cpu_quota() -> float | None:
    """The cgroups' CPU quota, as a number of CPUs; None if there is no quota."""
    return _engine.cpu_limits().quota


def share_of_cpus() -> int:
    """Number of threads that this process can run concurrently if all ranks on the machine use equally many; at least
    1.
    """
    return _engine.share_of_cpus()


def sharing_ranks() -> int:
    """Number of ranks that share this process's CPUs; 1 if the launcher has bound each rank to CPUs."""
    return _engine.sharing_ranks()


def usable_cores() -> int | None:
    """Number of physical cores with the CPUs that this process may run on; None if /sys does not list threads of one
    core.
    """
    from pathlib import Path

    from .preflight_facts import cores_of
    from .system_files import SystemFiles

    return cores_of(SystemFiles(Path("/")), allowed_cpus())


def local_rank() -> int:
    return _engine.local_ranks()[0]


def allowed_cpus(pid: int = 0) -> list[int]:
    """Returns the CPUs that a process may run on."""
    return _engine.cpu_limits("", pid).allowed


def physical_memory() -> int:
    return _engine.memory_limits().physical_bytes


def address_space() -> int:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 1 << 47 if limit == resource.RLIM_INFINITY else limit


def memory_left() -> int:
    """Number of bytes that can be allocated now before the OOM killer acts."""
    return _engine.memory_limits().left_bytes


def share_of_memory_left() -> int:
    """This rank's share of the available memory if all ranks on the machine use the same amount; never more than the
    limit.
    """
    return min(memory_left(), _engine.memory_limits().usable_bytes) // _engine.local_ranks()[1]


def memory_words() -> str:
    limits = _engine.memory_limits()
    words = f"the machine has {limits.available_bytes:,} bytes available"
    if limits.binding_bytes is None:
        return words
    return f"{words}; the cgroup uses {limits.binding_used_bytes or 0:,} of {limits.binding_bytes:,}"


def oom_kills() -> int | None:
    """Returns the number of OOM kills in this cgroup."""
    return _engine.memory_limits().oom_kills


def resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
