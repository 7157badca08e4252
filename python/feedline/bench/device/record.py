# SPDX-License-Identifier: Apache-2.0
"""Creates a run record from the measurements of ``feedline bench --device``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...machine.gpu_topology import Topology
from ...record.figures import figure, link

_RATIOS = {
    "pinning_a_copy": "speed of copies from page-locked memory, relative to pageable memory",
    "pinning_a_loop": "speed of a loop that copies from page-locked memory, relative to pageable memory",
    "a_stream": "speed of a loop that copies on a separate stream, relative to copies before each step",
    "bytes_for_floats": "speed of copies of uint8 batches, relative to float32 batches",
    "channels_last": "speed of steps on channels_last batches, relative to contiguous batches",
}


def of_device(
    record: dict[str, Any], result: Mapping[str, Any], topology: Topology | None, why: str | None
) -> dict[str, Any]:
    """Adds the measurements in `result` to `record`, which `files.envelope` created.

    Args:
        result: the return value of `measuring.measure`.
        topology: the GPU's topology; None if unknown, for the reason `why`.
    """
    from ...record.files import finite

    floats = result["ways"]["pinned_stream"]
    share = f"{floats['share_of_limit']:.0%} of the link's measured limit"
    whole: dict[str, Any] = finite(
        {
            **record,
            **result,
            "topology": None if topology is None else {**asdict(topology), "bytes_per_s": topology.bytes_per_s},
            "configuration": {
                "device": result["device"],
                "batch_size": result["batch_size"],
                "crop_pixels": result["size"],
            },
            "figures": _figures(result),
            "chain": [
                link("storage", None, None, "nothing is read, as batches are synthetic"),
                link("host", None, None, "nothing is decoded"),
                link("pcie", floats["copy_ms"]["value"], floats["copy_bytes_per_s"]["value"], f"float32, {share}"),
                link(
                    "gpu", floats["step_ms"]["value"], None, "a small network, repeated to reach the duration of a step"
                ),
            ],
            "notes": [*record["notes"], *([why] if why else [])],
        }
    )
    return whole


def _figures(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    ways = result["ways"]

    def of(name: str, label: str, unit: str, value: Mapping[str, Any], better: str | None) -> dict[str, Any]:
        return figure(name, label, unit, value["value"], value["low"], value["high"], better=better)

    rows = [
        of(
            "pinned_bytes_per_s",
            "copy of a batch from page-locked memory",
            "B/s",
            ways["pinned"]["copy_bytes_per_s"],
            "higher",
        ),
        of(
            "pageable_bytes_per_s",
            "copy of a batch from pageable memory",
            "B/s",
            ways["pageable"]["copy_bytes_per_s"],
            "higher",
        ),
        of("limit_bytes_per_s", "the link's measured limit", "B/s", result["limit_bytes_per_s"], "higher"),
    ]
    rows += [
        of(
            f"{name}_hidden",
            f"share of the copy time that overlaps with the step, {name}",
            "share",
            way["hidden"],
            "higher",
        )
        for name, way in ways.items()
    ]
    rows += [of(name, label, "times", result["compared"][name], "higher") for name, label in _RATIOS.items()]
    return rows
