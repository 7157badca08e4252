# SPDX-License-Identifier: Apache-2.0
"""Inspects the machine once, without root privileges, before a loader starts, and lists facts that could not be
read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .. import _engine
from .facts import cpu_model
from .gpu import Gpus, Reading
from .gpu_links import GpuLink, gpu_links
from .process_limits import ProcessLimits, process_limits
from .system_files import Space, SystemFiles

_VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES"),
    *("PYTHONMALLOC", "PYTHONDEVMODE", "PYTHONTRACEMALLOC", "MALLOC_CHECK_", "LD_PRELOAD", "NCCL_P2P_DISABLE"),
    *("PYTHONFAULTHANDLER", "TORCH_SHOW_CPP_STACKTRACES", "TORCH_DISTRIBUTED_DEBUG"),
)
_CLOUDS = {
    "amazon ec2": "Amazon EC2",
    "google": "Google Cloud",
    "microsoft corporation": "Azure",
    "alibaba cloud": "Alibaba Cloud",
    "digitalocean": "DigitalOcean",
}


@dataclass(frozen=True)
class Cpus:
    model: str | None
    online: int  # of the machine, regardless of affinity
    allowed: tuple[int, ...]
    quota: float | None
    capacity: float  # CPU quota in CPUs
    threads: int  # that can run concurrently
    cores: int | None  # of the allowed CPUs; two threads of one core count once
    nodes: Mapping[int, tuple[int, ...]]  # CPUs by NUMA node
    governor: str | None
    governor_driver: str | None
    load: float | None  # of the machine, last minute


@dataclass(frozen=True)
class HostMemory:
    """Sizes in bytes. None means unlimited or unknown."""

    physical: int
    available: int
    limit: int | None
    left: int  # that can be allocated before the OOM killer acts
    swap: int
    swap_used: int
    commit_left: int | None  # commit limit if the kernel does not overcommit (vm.overcommit_memory=2)
    oom_kills: int | None
    is_known: bool = True  # False: /proc/meminfo could not be read, and all values are estimates


@dataclass(frozen=True)
class PreflightFacts:
    """The facts found. `unseen`: a sentence for each fact that could not be read."""

    kernel: str
    container: str | None
    cloud: str | None
    cpus: Cpus
    memory: HostMemory
    shared: Space | None
    temporary: Space | None
    limits: ProcessLimits
    io_pressure: float | None  # share of the last minute in which some tasks waited for it
    memory_pressure: float | None  # share in which all tasks waited
    gpus: tuple[Reading, ...]
    gpu_links: tuple[GpuLink, ...]
    gpu_trouble: str  # why the driver's library returns nothing, or ""
    has_driver: bool  # whether the kernel has NVIDIA's driver
    has_device_files: bool
    has_infiniband: bool
    ranks: int  # on this machine, by the launcher
    environment: Mapping[str, str] = field(default_factory=dict)
    python: tuple[int, int] = sys.version_info[:2]
    unseen: tuple[str, ...] = ()


def look(root: SystemFiles, gpus: Gpus, environment: Mapping[str, str]) -> PreflightFacts:
    """Reads everything once. Never raises, whatever system files contain.

    Args:
        gpus: function that reads the GPUs within a time limit; see :func:`feedline.machine.gpu.of_engine`.
        environment: environment variables of the planned run.
    """
    nodes = [name for name in root.names("dev") if re.fullmatch(r"nvidia\d+", name)]
    readings = gpus.read()
    seen = PreflightFacts(
        kernel=(root.text("proc/sys/kernel/osrelease") or "").strip(),
        container=_container(root, environment),
        cloud=_cloud(root),
        cpus=_cpus(root),
        memory=_memory(root),
        shared=root.space("dev/shm"),
        temporary=root.space("tmp"),
        limits=process_limits(root),
        io_pressure=_pressure(root, "io", "some"),
        memory_pressure=_pressure(root, "memory", "full"),
        gpus=readings,
        gpu_links=gpu_links(root),
        gpu_trouble="" if readings else gpus.unavailable,
        has_driver=root.has("proc/driver/nvidia/version"),
        has_device_files=bool(nodes),
        has_infiniband=bool(root.names("sys/class/infiniband")),
        ranks=_engine.local_ranks()[1],
        environment={name: environment[name] for name in _VARIABLES if name in environment},
    )
    return _with_unseen(seen, root)


def _with_unseen(seen: PreflightFacts, root: SystemFiles) -> PreflightFacts:
    missing = {
        "the machine's memory (/proc/meminfo)": not seen.memory.is_known,
        "limits of a control group, such as a container's": not _engine.cgroup_version(root.for_engine),
        "/dev/shm": seen.shared is None,
        "the resource limits of processes (/proc/self/limits)": not seen.limits.is_known,
        "pressure on disks and memory (/proc/pressure), which the kernel does not measure": seen.io_pressure is None,
        "the CPUs that are threads of one core (/sys/devices/system/cpu)": seen.cpus.cores is None,
        f"the GPUs: {seen.gpu_trouble}": bool(seen.gpu_trouble) and (seen.has_driver or seen.has_device_files),
        "the utilisation of the GPUs": any(gpu.utilisation is None for gpu in seen.gpus),
        "the PCIe links of the GPUs (/sys/bus/pci)": bool(seen.gpus) and not seen.gpu_links,
    }
    refused = [f"{name}: this user is not permitted to read it" for name in dict.fromkeys(root.refused)]
    return replace(seen, unseen=(*(words for words, is_so in missing.items() if is_so), *refused))


def _cpus(root: SystemFiles) -> Cpus:
    limits = _engine.cpu_limits(root.for_engine)
    online = len(number_list(root.text("sys/devices/system/cpu/online") or "")) or _engine.online_cpus()
    scaling = "sys/devices/system/cpu/cpu0/cpufreq"
    return Cpus(
        model=cpu_model(root.path),
        online=max(online, len(limits.allowed)),
        allowed=tuple(limits.allowed),
        quota=limits.quota,
        capacity=limits.capacity,
        threads=limits.threads,
        cores=cores_of(root, limits.allowed),
        nodes=_nodes(root),
        governor=(root.text(f"{scaling}/scaling_governor") or "").strip() or None,
        governor_driver=(root.text(f"{scaling}/scaling_driver") or "").strip() or None,
        load=root.number("proc/loadavg"),
    )


def cores_of(root: SystemFiles, cpus: list[int]) -> int | None:
    """Returns the number of physical cores with these CPUs, or None if unknown."""
    siblings = set()
    for cpu in cpus:
        text = root.text(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        if text is None:
            return None
        siblings.add(text.strip())
    return len(siblings)


def _nodes(root: SystemFiles) -> dict[int, tuple[int, ...]]:
    found = {}
    for name in root.names("sys/devices/system/node"):
        match = re.fullmatch(r"node(\d+)", name)
        if match:
            text = root.text(f"sys/devices/system/node/{name}/cpulist") or ""
            found[int(match[1])] = tuple(number_list(text))
    return found


def number_list(text: str) -> list[int]:
    """Parses the kernel's number lists, such as ``0-3,8``; invalid lists are treated as empty."""
    found: list[int] = []
    for part in text.strip().split(","):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if match is None:
            return []
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def _memory(root: SystemFiles) -> HostMemory:
    limits = _engine.memory_limits(root.for_engine)
    text = root.text("proc/meminfo") or ""
    kib = {name: int(count) << 10 for name, count in re.findall(r"^(\w+):\s+(\d{1,15}) kB$", text, re.MULTILINE)}
    swap = kib.get("SwapTotal", 0)
    commit = None
    if root.number("proc/sys/vm/overcommit_memory") == 2 and "CommitLimit" in kib and "Committed_AS" in kib:
        commit = max(kib["CommitLimit"] - kib["Committed_AS"], 0)
    return HostMemory(
        physical=limits.physical_bytes,
        available=limits.available_bytes,
        limit=limits.limit_bytes,
        left=limits.left_bytes,
        swap=swap,
        swap_used=max(swap - kib.get("SwapFree", swap), 0),
        commit_left=commit,
        oom_kills=limits.oom_kills,
        is_known="MemTotal" in kib and "MemAvailable" in kib,
    )


def _pressure(root: SystemFiles, what: str, who: str) -> float | None:
    match = re.search(rf"^{who} .*?avg60=(\d+(?:\.\d+)?)", root.text(f"proc/pressure/{what}") or "", re.MULTILINE)
    return min(float(match[1]) / 100, 1.0) if match else None


def _container(root: SystemFiles, environment: Mapping[str, str]) -> str | None:
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "Kubernetes"
    if root.has(".dockerenv"):
        return "Docker"
    if root.has("run/.containerenv"):
        return "Podman"
    if "APPTAINER_CONTAINER" in environment or "SINGULARITY_CONTAINER" in environment:
        return "Apptainer"
    return environment.get("container") or None  # set by systemd-nspawn, LXC and Podman


def _cloud(root: SystemFiles) -> str | None:
    vendor = (root.text("sys/class/dmi/id/sys_vendor") or "").strip().lower()
    return _CLOUDS.get(vendor)
