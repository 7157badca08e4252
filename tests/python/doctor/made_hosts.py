# SPDX-License-Identifier: Apache-2.0
"""Generated machines: trees of /proc, /sys and control groups, file systems with sizes, and GPUs with given
properties.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from feedline.doctor.examination import Examination, Request, examine
from feedline.machine.gpu import Reading
from feedline.machine.system_files import SystemFiles

GB = 10**9
KIB = {"MemTotal": 64 * GB, "MemAvailable": 58 * GB, "SwapTotal": 8 * GB, "SwapFree": 8 * GB}
GROUP = "sys/fs/cgroup/box"
IN_GROUP = {"proc/self/cgroup": "0::/box\n"}
LIMITS = (("open files", 1_048_576), ("processes", 250_000), ("locked memory", 8 << 20), ("address space", None))
MOUNTS = "1 0 259:1 / / rw,relatime - ext4 /dev/nvme0n1p1 rw\n30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
GPU = Reading(0, "NVIDIA H100 80GB HBM3", 0.0, 1 * GB, 85 * GB, None, None, 70.0, 34, False, ())
PLACE = "sys/bus/pci/devices/0000:17:00.0"
LINK = {
    f"{PLACE}/vendor": "0x10de\n",
    f"{PLACE}/class": "0x030200\n",
    f"{PLACE}/numa_node": "-1\n",
    f"{PLACE}/current_link_width": "16\n",
    f"{PLACE}/max_link_width": "16\n",
    f"{PLACE}/current_link_speed": "2.5 GT/s PCIe\n",  # like an idle card
    f"{PLACE}/max_link_speed": "32.0 GT/s PCIe\n",
}
DRIVER = {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86\n", "dev/nvidia0": ""}
DISK = {"sys/dev/block/259:1/queue/rotational": "0\n", "sys/dev/block/259:1/queue/nr_requests": "1023\n"}


def limits(**changes: int | None) -> str:
    """/proc/self/limits."""
    rows = {name: changes.get(name.replace(" ", "_"), value) for name, value in LIMITS}
    lines = [f"Max {name:<22}{'unlimited' if value is None else value:<21}unlimited\n" for name, value in rows.items()]
    return "Limit                     Soft Limit           Hard Limit           Units\n" + "".join(lines)


def meminfo(**changes: int) -> str:
    return "".join(f"{name + ':':<16}{count >> 10} kB\n" for name, count in (KIB | changes).items())


def pressure(some: float = 0.0, full: float = 0.0) -> str:
    of = "avg10=0.00 avg60={:.2f} avg300=0.00 total=12345"
    return f"some {of.format(some)}\nfull {of.format(full)}\n"


def cpus(count: int, nodes: int = 1) -> dict[str, str]:
    """This many CPUs, two per core, spread over NUMA nodes."""
    files = {"sys/devices/system/cpu/online": f"0-{count - 1}\n", "proc/self/status": allowed(f"0-{count - 1}")}
    half = count // 2 or 1
    for cpu in range(count):
        pair = f"{cpu % half},{cpu % half + half}\n"
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"] = pair
    for node in range(nodes):
        files[f"sys/devices/system/node/node{node}/cpulist"] = (
            f"{node * count // nodes}-{(node + 1) * count // nodes - 1}\n"
        )
    return files


def allowed(text: str) -> str:
    return f"Name:\tpython\nCpus_allowed_list:\t{text}\n"


def usual() -> dict[str, str]:
    """A workstation of 16 CPUs and 64 GB with an NVMe disk."""
    return {
        "proc/cpuinfo": "model name\t: AMD EPYC 9354\n",
        "proc/meminfo": meminfo(),
        "proc/self/limits": limits(),
        "proc/self/mountinfo": MOUNTS,
        "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
        "proc/sys/vm/overcommit_memory": "0\n",
        "proc/loadavg": "0.52 0.40 0.31 1/812 4711\n",
        "proc/pressure/io": pressure(),
        "proc/pressure/memory": pressure(),
        "proc/4711/maps": "7f0000000000-7f0000001000 r--p 00000000 00:01 5 /usr/lib/libc.so.6\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
        **cpus(16),
        **DISK,
    }


SPACES = {"dev/shm": (32 * GB, 32 * GB, 8_000_000, 7_999_999), "tmp": (200 * GB, 90 * GB, 12_000_000, 11_000_000)}


@dataclass(frozen=True)
class Host:
    """The differences from the usual machine. A file of None does not exist; a name that begins with "@" is in the
    source.
    """

    files: Mapping[str, str | None] = field(default_factory=dict)
    spaces: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)
    gpus: tuple[Reading, ...] = ()
    trouble: str = "there is no libnvidia-ml.so.1"
    environment: Mapping[str, str] = field(default_factory=dict)
    request: Request | None = None
    mount: str | None = None  # mount of the source: "kind device options"
    source_files: Mapping[str, int] = field(default_factory=dict)  # sizes, with holes
    left: Mapping[str, tuple[int, float]] = field(default_factory=dict)  # bytes and hours
    python: tuple[int, int] | None = None

    def but(self, files: Mapping[str, str | None] | None = None, **changes: Any) -> Host:
        return replace(self, files={**self.files, **(files or {})}, **changes)


GPU_HOST = Host({**LINK, **DRIVER}, gpus=(GPU,))


class MadeGpus:
    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def unavailable(self) -> str:
        return "" if self._host.gpus else self._host.trouble

    def read(self) -> tuple[Reading, ...]:
        return self._host.gpus


def build(host: Host, folder: Path) -> tuple[SystemFiles, str | None]:
    """Writes the files. Returns the machine's root, and the source if it has one."""
    root, source = folder / "root", None
    files: dict[str, str | None] = {**usual(), **host.files}
    if host.mount is not None:
        data = folder / "data"
        data.mkdir(parents=True)
        for name, size in host.source_files.items():
            with open(data / name, "wb") as file:
                file.truncate(size)
        kind, device, options = host.mount.split(" ")
        number = {"ext4": "8:1", "tmpfs": "0:31", "overlay": "0:32"}.get(kind, "0:40")
        files["proc/self/mountinfo"] = f"{MOUNTS}40 1 {number} / {data} rw - {kind} {device} {options}\n"
        source = str(data)
    for name, text in files.items():
        if text is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name, (size, hours) in host.left.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
        os.utime(path, (path.stat().st_mtime - hours * 3600,) * 2)
    spaces = {**SPACES, **host.spaces}

    def statvfs(path: Path) -> Any:
        name = str(path.relative_to(root)) if path.is_relative_to(root) else "data"
        total, free, inodes, free_inodes = spaces.get(name, SPACES["tmp"])
        return SimpleNamespace(
            f_frsize=1, f_bsize=1, f_blocks=total, f_bavail=free, f_files=inodes, f_favail=free_inodes
        )

    return SystemFiles(root, statvfs), source


def examined(host: Host, folder: Path, words: tuple[str, ...] = ()) -> Examination:
    root, source = build(host, folder)
    return examine(root, MadeGpus(host), host.environment, source, words, host.request)
