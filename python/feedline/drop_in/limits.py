# SPDX-License-Identifier: Apache-2.0
"""What this process may use: memory and CPUs, seen through cgroups, affinity and rlimits."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_UNLIMITED = 1 << 60


def physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def address_space() -> int:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 1 << 47 if limit == resource.RLIM_INFINITY else limit


def _cgroup_folder(controller: str) -> Path | None:
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if names == "" or controller in names.split(","):
                root = Path("/sys/fs/cgroup") if names == "" else Path("/sys/fs/cgroup") / controller
                for folder in (root / path.lstrip("/"), root):
                    known = ("memory.max", "memory.limit_in_bytes") if controller == "memory" else ("cpu.max",)
                    if any((folder / name).exists() for name in known):
                        return folder
    except OSError:
        pass
    return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _cgroup_memory() -> tuple[int, int] | None:
    """(limit, usage) of the cgroup, where it has a limit."""
    folder = _cgroup_folder("memory")
    if folder is None:
        return None
    for limit_name, usage_name in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        limit, usage = _number(folder / limit_name), _number(folder / usage_name)
        if limit is not None and usage is not None and limit < _UNLIMITED:
            # Page cache counts as usage, and gives way.
            try:
                words = (folder / "memory.stat").read_text().split()
                usage -= int(dict(zip(words[::2], words[1::2], strict=False)).get("inactive_file", 0))
            except (OSError, ValueError):
                pass
            return limit, max(usage, 0)
    return None


def _available() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return physical_memory()


def memory_left() -> int:
    group = _cgroup_memory()
    return _available() if group is None else max(0, min(_available(), group[0] - group[1]))


def memory_words() -> str:
    group = _cgroup_memory()
    words = f"the machine has {_available():,} bytes available"
    return words if group is None else f"{words}; the cgroup uses {group[1]:,} of {group[0]:,}"


def oom_kills() -> int | None:
    """How often the kernel killed for memory in this cgroup."""
    folder = _cgroup_folder("memory")
    for name in ("memory.events", "memory.oom_control"):
        try:
            if folder is not None:
                for line in (folder / name).read_text().splitlines():
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        except (OSError, ValueError):
            continue
    return None


def usable_cpus() -> int:
    cpus = len(os.sched_getaffinity(0))
    folder = _cgroup_folder("cpu")
    if folder is not None:
        try:
            quota, period = (folder / "cpu.max").read_text().split()
            if quota != "max":
                cpus = min(cpus, max(1, round(int(quota) / int(period))))
        except (OSError, ValueError):
            pass
    return max(1, cpus)


def resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
