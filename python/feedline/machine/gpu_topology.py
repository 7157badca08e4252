# SPDX-License-Identifier: Apache-2.0
"""Reads a GPU's current and maximum PCIe link, NVLinks, and NUMA node."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _engine

_LIBRARY = "libnvidia-ml.so.1"
# Bytes per second of a lane in one direction, by generation: transfers per second, less the line code (8b/10b up to 2,
# 128b/130b up to 5, FLITs with 242 of 256 bytes in 6).
_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
_BUS = re.compile(r"(?:[0-9a-f]{4})?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])", re.IGNORECASE)


@dataclass(frozen=True)
class Topology:
    """The PCIe link, NVLinks and NUMA node of a GPU. None means not reported by the driver, the GPU or the system."""

    name: str
    bus_id: str | None  # as in /sys: "0000:3b:00.0"
    pcie_generation: int | None  # supported by both GPU and system
    pcie_generation_now: int | None  # lower if an idle GPU reduced it
    pcie_width: int | None  # current lanes
    pcie_width_most: int | None
    nvlinks: int | None  # active links
    numa_node: int | None

    @property
    def bytes_per_s(self) -> float | None:
        """The bandwidth of the PCIe link in one direction, before subtracting packet headers (5 to 15 %)."""
        lane = _LANE.get(self.pcie_generation or 0)
        return None if lane is None or self.pcie_width is None else lane * self.pcie_width

    @property
    def is_narrow(self) -> bool:
        """Whether the link uses fewer lanes than both GPU and system support."""
        return (
            self.pcie_width is not None and self.pcie_width_most is not None and self.pcie_width < self.pcie_width_most
        )


def topology(uuid: str, root: Path = Path("/"), library: str = _LIBRARY) -> tuple[Topology | None, str | None]:
    """Returns the topology of the GPU with this UUID, with or without the prefix ``GPU-``, or the reason why it is
    unknown.

    Args:
        root: the folder that contains /sys.
        library: NVIDIA's management library (NVML).
    """
    reader = _engine.GpuReader(library)
    reader.driver()
    for gpu in reader.gpus():
        if gpu["uuid"].removeprefix("GPU-").lower() == uuid.removeprefix("GPU-").lower():
            return _of(gpu, root), None
    return None, reader.unavailable or f"NVML has no GPU {uuid}: it may be a MIG instance"


def _of(gpu: dict[str, Any], root: Path) -> Topology:
    match = _BUS.fullmatch(gpu["bus_id"])
    bus_id = match[1].lower() if match else None
    links = ("pcie_generation", "pcie_generation_now", "pcie_width", "pcie_width_most", "nvlinks")
    return Topology(
        name=gpu["name"],
        bus_id=bus_id,
        numa_node=_numa_node(root, bus_id) if bus_id else None,
        **{link: gpu[link] for link in links},
    )


def _numa_node(root: Path, bus_id: str) -> int | None:
    try:
        node = int((root / "sys/bus/pci/devices" / bus_id / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return None if node < 0 else node  # -1: a single node, or unknown
