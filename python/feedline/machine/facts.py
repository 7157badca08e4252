# SPDX-License-Identifier: Apache-2.0
"""Facts about this machine that affect a loader's speed and can be read without root privileges.

Sizes are in bytes. `root` replaces "/" in tests.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import resource
from pathlib import Path

from feedline import _engine

from .gpu_facts import gpu_facts
from .processor import processor_facts

Facts = dict[str, str | int | float | bool | None]
_KIB_NAMES = {
    "memory_bytes": "MemTotal",
    "available_bytes": "MemAvailable",
    "page_cache_bytes": "Cached",
    "swap_bytes": "SwapTotal",
}


def machine_facts(root: Path = Path("/")) -> tuple[Facts, list[str]]:
    """Returns the facts, and one sentence for each fact that could not be read."""
    cpus = _engine.cpu_limits(_engine_root(root))
    quota, memory_limit, cgroup = cgroup_limits(root)
    facts: Facts = {
        "host": platform.node(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": cpu_model(root),
        **processor_facts(root),
        "cpus": _engine.online_cpus(),
        "cpus_allowed": len(cpus.allowed),
        "quota_cpus": quota,
        "usable_cpus": cpus.capacity,
        "cgroup": cgroup,
        **_memory(root),
        "memory_limit_bytes": memory_limit,
        "shared_memory_bytes": _size_of(root / "dev/shm"),
        "memlock_bytes": _limit(resource.RLIMIT_MEMLOCK),
        "open_files": _limit(resource.RLIMIT_NOFILE),
    }
    notes = [f"the machine's {name} could not be read" for name in ("cpu", "memory_bytes") if facts[name] is None]
    if cgroup is None:
        notes.append(
            "the limits of the cgroup could not be read, so a CPU or memory limit of a container would be missed"
        )
    with contextlib.suppress(OSError):
        facts["load_1min"] = os.getloadavg()[0]
    gpu, gpu_note = gpu_facts(root)
    return facts | gpu, notes + ([gpu_note] if gpu_note else [])


def cpu_model(root: Path) -> str | None:
    text = _text(root / "proc/cpuinfo") or ""
    # x86 has "model name"; ARM often has only numbers for implementer and part
    for name in ("model name", "Model", "CPU part"):
        found = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
        if found:
            return found[1].strip()
    return None


def cgroup_limits(root: Path) -> tuple[float | None, int | None, str | None]:
    """Returns (CPU quota, memory limit in bytes, cgroup version): the lowest limits among this process's cgroup and its
    ancestors.
    """
    engine_root = _engine_root(root)
    version = _engine.cgroup_version(engine_root)
    if version == 0:
        return None, None, None
    return _engine.cpu_limits(engine_root).quota, _engine.memory_limits(engine_root).limit_bytes, str(version)


def _engine_root(root: Path) -> str:
    return "" if root == Path("/") else str(root)


def _memory(root: Path) -> Facts:
    text = _text(root / "proc/meminfo") or ""
    found = {name: int(kib) << 10 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
    return {name: found.get(key) for name, key in _KIB_NAMES.items()}


def _size_of(path: Path) -> int | None:
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    return status.f_blocks * status.f_frsize


def _limit(which: int) -> int | None:
    """None: no limit."""
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None
