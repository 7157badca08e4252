# SPDX-License-Identifier: Apache-2.0
"""Reads the machine's GPUs and driver, which builds must support."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ... import _engine

_LIBRARY = "libnvidia-ml.so.1"
# NVIDIA, "CUDA GPU Compute Capability" (developer.nvidia.com/cuda-gpus), as of 2026-06. The first match counts.
_CAPABILITIES = (
    (r"GB300|B300", 103),
    (r"GB200|B200|B100", 100),
    (r"GB10\b", 121),
    (r"RTX (?:PRO )?\d000 Blackwell|RTX 50\d0", 120),
    (r"GH200|H100|H200|H800|H20\b", 90),
    (r"L40S?|L4\b|L20\b|L2\b|RTX \d000 (?:SFF )?Ada|RTX 40\d0", 89),
    (r"A100|A800|A30\b", 80),
    (r"A40|A10G?\b|A16|A2\b|RTX A\d000|RTX 30\d0", 86),
    (r"Tesla T4|T4G?\b|RTX 20\d0|TITAN RTX|GTX 16\d0|Quadro RTX", 75),
    (r"V100|TITAN V", 70),
    (r"P100", 60),
    (r"P40|P4\b|GTX 10\d0|TITAN X", 61),
)


@dataclass(frozen=True)
class Graphics:
    """The machine's NVIDIA GPUs.

    Attributes:
        driver: version of the driver, such as ``580.65.06``; None without a driver, or if unknown.
        names: names of the GPUs.
        note: the reason why data is missing although a driver exists, or "".
    """

    driver: str | None = None
    names: tuple[str, ...] = ()
    note: str = ""

    @property
    def driver_major(self) -> int | None:
        found = re.match(r"\d+", self.driver or "")
        return int(found[0]) if found else None


def capability_of(name: str) -> int | None:
    """Returns the compute capability, such as 90 for an H100, or None if the GPU is not in the table."""
    return next((value for pattern, value in _CAPABILITIES if re.search(pattern, name)), None)


def graphics_of(root: Path = Path("/"), library: str = _LIBRARY) -> Graphics:
    """Reads this machine's GPUs from the driver's library, or else from /proc/driver/nvidia."""
    reader = _engine.GpuReader(library)
    driver = reader.driver()
    if driver["is_there"] and driver["gpus"] is not None:
        return Graphics(driver["version"], tuple(str(gpu["name"] or "unknown") for gpu in reader.gpus()))
    names = []
    for file in sorted(root.glob("proc/driver/nvidia/gpus/*/information")):
        found = re.search(r"^Model:\s*(.+)$", _text(file), re.MULTILINE)
        names.append(found[1].strip() if found else "unknown")
    version = re.search(
        r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)", _text(root / "proc/driver/nvidia/version")
    )
    note = ""
    if names or version:
        note = reader.unavailable or f"an NVIDIA driver is installed, but {library} cannot be loaded"
    return Graphics(version[1] if version else None, tuple(names), note)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
