# SPDX-License-Identifier: Apache-2.0
"""Reads the PCIe links of NVIDIA GPUs from sysfs: current and maximum width and speed, and the NUMA node."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .system_files import SystemFiles

_NVIDIA = "0x10de"
_DISPLAY = "0x03"  # the PCI class of VGA and 3D controllers


@dataclass(frozen=True)
class GpuLink:
    """A GPU card. None: unknown. Speeds are in GT/s, and drop while the card is idle."""

    place: str  # PCI address, such as 0000:17:00.0
    width: int | None
    most_width: int | None
    speed: float | None
    most_speed: float | None
    numa_node: int | None  # may be None although there is one


def gpu_links(root: SystemFiles) -> tuple[GpuLink, ...]:
    """Returns the cards in PCI order."""
    found = []
    for place in root.names("sys/bus/pci/devices"):
        folder = f"sys/bus/pci/devices/{place}"
        if _word(root, f"{folder}/vendor") != _NVIDIA or not _word(root, f"{folder}/class").startswith(_DISPLAY):
            continue
        node = root.number(f"{folder}/numa_node")
        found.append(
            GpuLink(
                place,
                _lanes(root, f"{folder}/current_link_width"),
                _lanes(root, f"{folder}/max_link_width"),
                _speed(root, f"{folder}/current_link_speed"),
                _speed(root, f"{folder}/max_link_speed"),
                None if node is None or node < 0 else int(node),
            )
        )
    return tuple(found)


def _word(root: SystemFiles, name: str) -> str:
    return (root.text(name) or "").strip().lower()


def _lanes(root: SystemFiles, name: str) -> int | None:
    """Returns the number of lanes; None if unknown, which virtual machines report as 0 or 255."""
    lanes = root.number(name)
    return int(lanes) if lanes is not None and lanes in (1, 2, 4, 8, 16, 32) else None


def _speed(root: SystemFiles, name: str) -> float | None:
    match = re.match(r"(\d+(?:\.\d+)?) GT/s", root.text(name) or "")
    return float(match[1]) if match else None
