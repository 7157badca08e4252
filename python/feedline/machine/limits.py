# SPDX-License-Identifier: Apache-2.0
"""What this process may use: CPUs and memory, by the engine's reader; and what of it is this rank's."""

from __future__ import annotations

import os
import resource

from feedline import _engine


def usable_cpus() -> int:
    """Threads that this process, and the ranks it shares its CPUs with, can keep running together."""
    return _engine.cpu_limits().threads


def cpu_quota() -> float | None:
    """CPUs' worth of time that the control groups give; None: no quota."""
    return _engine.cpu_limits().quota


def share_of_cpus() -> int:
    """Threads that this process can keep running where all ranks of the machine do the same; at least 1."""
    return _engine.share_of_cpus()


def sharing_ranks() -> int:
    """How many ranks share the CPUs that this process may use: 1 where the launcher has bound each."""
    return _engine.sharing_ranks()


def local_rank() -> int:
    return _engine.local_ranks()[0]


def allowed_cpus(pid: int = 0) -> list[int]:
    """The numbers of the CPUs that a process may run on."""
    return _engine.cpu_limits("", pid).allowed


def physical_memory() -> int:
    return _engine.memory_limits().physical_bytes


def address_space() -> int:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 1 << 47 if limit == resource.RLIM_INFINITY else limit


def memory_left() -> int:
    """Bytes that can be taken now before somebody is killed for it."""
    return _engine.memory_limits().left_bytes


def share_of_memory_left() -> int:
    """What of it this rank may plan with, where all ranks of the machine take as much; never more than the limit."""
    return min(memory_left(), _engine.memory_limits().usable_bytes) // _engine.local_ranks()[1]


def memory_words() -> str:
    limits = _engine.memory_limits()
    words = f"the machine has {limits.available_bytes:,} bytes available"
    if limits.binding_bytes is None:
        return words
    return f"{words}; the cgroup uses {limits.binding_used_bytes or 0:,} of {limits.binding_bytes:,}"


def oom_kills() -> int | None:
    """How often the kernel killed for memory in this cgroup."""
    return _engine.memory_limits().oom_kills


def resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
