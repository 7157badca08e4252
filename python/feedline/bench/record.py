# SPDX-License-Identifier: Apache-2.0
"""Creates a run record from the measurements of ``feedline bench``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..record import series
from ..record.figures import figure, link

# the stage whose items are batches; items of the other stages are samples
BATCH_STAGES = ("batch", "consumer")


def of_bench(
    record: dict[str, Any], result: Mapping[str, Any], arrivals: Sequence[tuple[float, int, float]]
) -> dict[str, Any]:
    """Adds the measurements in `result` to `record`, which `files.envelope` created.

    Args:
        result: the object that ``feedline bench`` prints.
        arrivals: for every batch, its arrival time in seconds, its number of samples, and the seconds spent in next().
    """
    from ..record.files import finite

    ours = result["feedline"]
    delivered = ours["stages"].get("consumer", {}).get("items")
    # an epoch's last batch may have fewer rows than the others
    rows = ours["images"] / delivered if delivered else float(result["batch_size"])
    waits_ms = [1000 * wait for _, _, wait in arrivals]
    held = series.histogram(waits_ms)
    whole: dict[str, Any] = finite(
        {
            **record,
            **result,
            "configuration": {
                "batch_size": result["batch_size"],
                "threads": ours["threads"],
                "crop_pixels": result["size"],
                "shuffle": True,
                "samples": result["samples"],
            },
            "storage": _storage(record, ours),
            "figures": _figures(result, arrivals),
            "stages": [_stage(name, stage, rows) for name, stage in ours["stages"].items()],
            "chain": _chain(ours["stages"], rows, ours["threads"]),
            "histograms": {} if held is None else {"wait_ms": held},
            "timeline": {
                "series": [{"name": "wait_ms", "points": series.points([time for time, _, _ in arrivals], waits_ms)}]
            },
        }
    )
    return whole


_STEADY = (
    ("images_per_s", "images per second", "1/s"),
    ("cpus", "CPUs in use", "CPUs"),
    ("disk_bytes_per_s", "bytes read from disks per second", "B/s"),
)


def _figures(result: Mapping[str, Any], arrivals: Sequence[tuple[float, int, float]]) -> list[dict[str, Any]]:
    ours = result["feedline"]
    low, high = series.rate_interval([float(n) for _, n, _ in arrivals], [wait for _, _, wait in arrivals])
    rate = ours["images_per_s"]
    figures = [
        figure("images_per_s", "images per second", "1/s", rate, low, high, better="higher"),
        figure(
            "cpu_s_per_1000_images", "CPU time per 1,000 images", "s", ours["cpu_s_per_1000_images"], better="lower"
        ),
        figure("first_batch_s", "until the first batch", "s", ours["first_batch_s"], better="lower"),
        figure("held_bytes_peak", "peak size of prefetched batches", "B", ours["held_bytes_peak"], better="lower"),
    ]
    for name, label, unit in _STEADY:
        found = ours.get("steadiness", {}).get(name)
        if found is not None:
            figures.append(
                figure(f"{name}_spread", f"spread of {label} over seconds", "share", found["spread"], better="lower")
            )
            if name != "images_per_s":
                figures.append(figure(f"{name}_mean", label, unit, found["mean"], better=None))
    if "decode_limit" in result:  # not if pixels are stored
        limit = result["decode_limit"]["images_per_s"]
        figures += [
            figure("decode_limit_images_per_s", "decoding alone", "1/s", limit, better="higher"),
            figure("share_of_limit", "reached of decoding alone", "share", result["share_of_limit"], better="higher"),
        ]
    if "torch" in result:
        stock = result["torch"]["images_per_s"]
        figures.append(figure("torch_images_per_s", "torch's DataLoader", "1/s", stock, better="higher"))
    return figures


def _storage(record: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the facts in `record`, including the responses of the host that served the most data."""
    facts: dict[str, Any] | None = record["storage"]
    if facts is None or not ours.get("network"):
        return facts
    host = max(ours["network"], key=lambda one: one["bytes"])
    return {**facts, **{name: host[name] for name in ("host", "requests", "latency_s", "answer_bytes_per_s")}}


def _stage(name: str, stage: Mapping[str, float], rows: float) -> dict[str, Any]:
    """`rows`: mean number of samples per batch."""
    items = stage["items"]
    batches = items if name in BATCH_STAGES else items / rows
    return {
        "name": name,
        "ms_per_batch": 1000 * stage["busy_s"] / batches if batches else None,
        "bytes_per_batch": stage["bytes"] / batches if batches else None,
        "blocked_s": stage["blocked_s"],
        "starved_s": stage["starved_s"],
    }


def _chain(stages: Mapping[str, Mapping[str, float]], rows: float, threads: int) -> list[dict[str, Any]]:
    ms = {name: _stage(name, stage, rows)["ms_per_batch"] for name, stage in stages.items()}
    host = [value for name, value in ms.items() if name in ("decode", "transform", "batch") and value is not None]
    storage = stages.get("storage", {})
    rate = storage["bytes"] / storage["busy_s"] if storage.get("busy_s") else None
    no_gpu = "feedline bench measures only the loader, without copies to a GPU or training steps"
    return [
        link(
            "storage",
            ms.get("storage"),
            rate,
            "reading time, summed over all threads, with or without the page cache; the rate is that of one thread",
            threads,
        ),
        link(
            "host",
            sum(host) if host else None,
            None,
            "decode, transform and batch time, summed over all threads",
            threads,
        ),
        link("pcie", None, None, no_gpu),
        link("gpu", None, None, no_gpu),
    ]
