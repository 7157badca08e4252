# SPDX-License-Identifier: Apache-2.0
"""Facts about this machine that change how fast a loader can be, all readable without root.

Sizes are bytes. `root` stands for "/" and is another folder in tests.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from .gpu import gpu_facts

Facts = dict[str, str | int | float | bool | None]
_N = TypeVar("_N", int, float)
_UNLIMITED = 1 << 60  # cgroup v1 says "no limit" by a number near 2^63
_KIB_NAMES = {
    "memory_bytes": "MemTotal",
    "available_bytes": "MemAvailable",
    "page_cache_bytes": "Cached",
    "swap_bytes": "SwapTotal",
}


def machine_facts(root: Path = Path("/")) -> tuple[Facts, list[str]]:
    """The facts, and one sentence for each that could not be read."""
    allowed = len(os.sched_getaffinity(0))
    quota, memory_limit, cgroup = cgroup_limits(root)
    facts: Facts = {
        "host": platform.node(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": cpu_model(root),
        "cpus": os.cpu_count(),
        "cpus_allowed": allowed,
        "quota_cpus": quota,
        "usable_cpus": min(float(allowed), quota) if quota else float(allowed),
        "cgroup": cgroup,
        **_memory(root),
        "memory_limit_bytes": memory_limit,
        "shared_memory_bytes": _size_of(root / "dev/shm"),
        "memlock_bytes": _limit(resource.RLIMIT_MEMLOCK),
        "open_files": _limit(resource.RLIMIT_NOFILE),
    }
    notes = [f"the machine's {name} could not be read" for name in ("cpu", "memory_bytes") if facts[name] is None]
    if cgroup is None:
        notes.append("the limits of the cgroup could not be read: a container's CPU or memory limit would not show")
    with contextlib.suppress(OSError):
        facts["load_1min"] = os.getloadavg()[0]
    gpu, gpu_note = gpu_facts(root)
    return facts | gpu, notes + ([gpu_note] if gpu_note else [])


def cpu_model(root: Path) -> str | None:
    text = _text(root / "proc/cpuinfo") or ""
    # x86 has "model name"; ARM often only the numbers of implementer and part
    for name in ("model name", "Model", "CPU part"):
        found = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
        if found:
            return found[1].strip()
    return None


def cgroup_limits(root: Path) -> tuple[float | None, int | None, str | None]:
    """(CPUs by quota, bytes of memory, version) of this process's cgroup: the tightest of it and what it lies in."""
    paths: dict[str, str] = {}
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3:
            paths |= dict.fromkeys(fields[1].removeprefix("name=").split(","), fields[2])
    if not paths:
        return None, None, None
    top = root / "sys/fs/cgroup"
    if (top / "cgroup.controllers").exists():
        folders = _ancestors(top, paths.get("", "/"))
        quotas = [_quota_v2(_text(folder / "cpu.max")) for folder in folders]
        limits = [_number(_text(folder / "memory.max")) for folder in folders]
        return _least(quotas), _least(limits), "2"
    cpu = [_quota_v1(folder) for folder in _ancestors(top / "cpu", paths.get("cpu", "/"))]
    memory = [_number(_text(f / "memory.limit_in_bytes")) for f in _ancestors(top / "memory", paths.get("memory", "/"))]
    readable = (top / "cpu").is_dir() or (top / "memory").is_dir()
    return _least(cpu), _least([m for m in memory if m and m < _UNLIMITED]), "1" if readable else None


def _ancestors(top: Path, path: str) -> list[Path]:
    """The folder of a cgroup and of all around it; in a container only the top may be there."""
    parts = [part for part in path.split("/") if part and part != ".."]
    return [top.joinpath(*parts[:i]) for i in range(len(parts), -1, -1)]


def _quota_v2(text: str | None) -> float | None:
    fields = (text or "").split()
    if len(fields) != 2 or fields[0] == "max":
        return None
    quota, period = _number(fields[0]), _number(fields[1])
    return quota / period if quota and period else None


def _quota_v1(folder: Path) -> float | None:
    quota = _number(_text(folder / "cpu.cfs_quota_us"))
    period = _number(_text(folder / "cpu.cfs_period_us"))
    return quota / period if quota and period and quota > 0 else None


def _memory(root: Path) -> Facts:
    text = _text(root / "proc/meminfo") or ""
    found = {name: int(kib) << 10 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
    return {name: found.get(key) for name, key in _KIB_NAMES.items()}


def _least(values: Iterable[_N | None]) -> _N | None:
    known = [value for value in values if value is not None]
    return min(known) if known else None


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


def _number(text: str | None) -> int | None:
    try:
        return int((text or "").strip())
    except ValueError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None
