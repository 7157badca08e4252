# SPDX-License-Identifier: Apache-2.0
"""Creates a run record from the measurements of ``feedline bench --device``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...machine.gpu_topology import Topology
from ...record.figures import figure, link

_RATIOS = {
    "pinning_a_copy": "copies from page-locked memory, over copies from pageable memory",
    "pinning_a_loop": "a loop that copies from page-locked memory, over a pageable one",
    "a_stream": "copies on a separate stream, over copies before each step",
    "bytes_for_floats": "bytes over the link in place of floats: copies",
    "channels_last": "a step on channels_last, over contiguous",
}


def of_device(
    record: dict[str, Any], result: Mapping[str, Any], topology: Topology | None, why: str | None
) -> dict[str, Any]:
    """Adds the measurements of `result` to `record`, as `files.envelope` made it.

    Args:
        result: returned by `measuring.measure`.
        topology: of the GPU; if None, `why` has the reason.
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
                link("storage", None, None, "nothing is read: batches are synthetic"),
                link("host", None, None, "nothing is decoded"),
                link("pcie", floats["copy_ms"]["value"], floats["copy_bytes_per_s"]["value"], f"float32, {share}"),
                link("gpu", floats["step_ms"]["value"], None, "a small network, repeated to reach the step's time"),
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
            "pinned_bytes_per_s", "a batch from page-locked memory", "B/s", ways["pinned"]["copy_bytes_per_s"], "higher"
        ),
        of(
            "pageable_bytes_per_s",
            "a batch from pageable memory",
            "B/s",
            ways["pageable"]["copy_bytes_per_s"],
            "higher",
        ),
        of("limit_bytes_per_s", "the link's measured limit", "B/s", result["limit_bytes_per_s"], "higher"),
    ]
    rows += [
        of(f"{name}_hidden", f"of a copy's time hidden under the step, {name}", "share", way["hidden"], "higher")
        for name, way in ways.items()
    ]
    rows += [of(name, label, "times", result["compared"][name], "higher") for name, label in _RATIOS.items()]
    return rows
