# SPDX-License-Identifier: Apache-2.0
"""``feedline bench --device``: runs the measurement and prints the result."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from feedline.bench.device.measuring import measure
from feedline.bench.device.record import of_device
from feedline.bench.device.torch_link import TorchLink, find_device
from feedline.cli.console import OUT, bytes_text, print_json, steps, table
from feedline.machine.gpu_topology import Topology, topology
from feedline.record import envelope, write

_SAID = {
    "pinning_a_copy": "page-locked memory makes a copy {} times as fast",
    "pinning_a_loop": "page-locked memory alone makes the loop {} times as fast",
    "a_stream": "a separate stream, one batch ahead, makes the loop faster by a further factor of {}",
    "bytes_for_floats": "sending uint8 and converting to float on the GPU makes a copy {} times as fast",
    "channels_last": "channels_last makes the step {} times as fast",
}


def run(name: str, batch_size: int, size: int, seconds: float, as_json: bool, record: Path | None) -> int:
    """Runs the measurement, prints the result, and writes the record if one is requested.

    Raises:
        ConfigError: the GPU does not exist.
    """
    torch, device = find_device(name)
    began = time.time()
    link = TorchLink(torch, device, batch_size, size)
    with steps(None, "measuring"):
        result = measure(link, batch_size=batch_size, size=size, seconds=seconds)
    found, why = topology(link.uuid)
    if as_json or record is not None:
        facts = envelope("bench", ["feedline", *sys.argv[1:]], str(device), began=began)
        whole = of_device({**facts, "wall_s": time.time() - began}, result, found, why)
    print_json(whole) if as_json else show(result, found, why)
    if record is not None:
        write(whole, record)
    return 0


def show(result: dict[str, Any], found: Topology | None, why: str | None) -> None:
    """Prints `result` as tables and sentences."""
    OUT.print(f"[bold]{result['device']}[/]: batches of {result['batch_size']}, {result['rounds']} rounds")
    OUT.print(described(found, why), highlight=False)
    OUT.print(f"measured limit of the link: {bytes_text(result['limit_bytes_per_s']['value'])}/s", highlight=False)
    if result["unified_memory"]:
        OUT.print("GPU and CPU share memory, so copies do not cross a link, and pinning helps little", highlight=False)
    table(
        ("way", "a batch", "copied at", "of the limit", "copy ms", "step ms", "both ms", "hidden"),
        [
            (
                name,
                bytes_text(way["bytes_per_batch"]),
                f"{bytes_text(way['copy_bytes_per_s']['value'])}/s",
                f"{way['share_of_limit']:.0%}",
                f"{way['copy_ms']['value']:.2f}",
                f"{way['step_ms']['value']:.2f}",
                f"{way['batch_ms']['value']:.2f}",
                _share(way["hidden"]),
            )
            for name, way in result["ways"].items()
        ],
    )
    for line in sentences(result["compared"]):
        OUT.print(line, highlight=False)


def described(found: Topology | None, why: str | None) -> str:
    """Describes the GPU's PCIe link in one line."""
    if found is None:
        return f"the GPU's PCIe link is unknown: {why}"
    line = f"PCIe {found.pcie_generation or '?'} x{found.pcie_width or '?'}"
    if found.bytes_per_s is not None:
        line += f" ({bytes_text(found.bytes_per_s)}/s)"
    if found.is_narrow:
        line += f", although x{found.pcie_width_most} is possible: check the slot and the riser"
    if found.pcie_generation_now not in (None, found.pcie_generation):
        line += f"; at generation {found.pcie_generation_now} after the run"
    if found.nvlinks:
        line += f"; NVLinks: {found.nvlinks}"
    return line + ("" if found.numa_node is None else f"; NUMA node {found.numa_node}")


def sentences(compared: dict[str, dict[str, float | None]]) -> list[str]:
    """Describes the gain of each variant with its interval, and whether it is significant."""
    lines = []
    for name, words in _SAID.items():
        ratio = compared[name]
        low, high = ratio["low"], ratio["high"]
        line = words.format(f"{ratio['value']:.2f}")
        if low is not None and high is not None:
            line += f" (95 %: {low:.2f} to {high:.2f})"
            if low <= 1 <= high:
                line += ", no significant difference"
        lines.append(line)
    return lines


def _share(value: dict[str, float | None]) -> str:
    low, high = value["low"], value["high"]
    interval = "" if low is None or high is None else f" [{max(low, 0):.0%}, {min(high, 1):.0%}]"
    return f"{value['value']:.0%}{interval}"
