# SPDX-License-Identifier: Apache-2.0
"""Names, kinds and units of the metrics of a loader, for every system that collects them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

Statistics: TypeAlias = Mapping[str, Mapping[str, Any]]  # of loaders by name, in the form of the engine or the drop-in


class Counted(NamedTuple):
    """A value in the statistics, and the metric that exposes it. The name of the metric ends with its unit, if it has
    one.
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    help: str
    key: str  # in the statistics


TOTALS = (
    Counted("feedline_batches", "counter", "", "Number of batches delivered to the training loop.", "batches"),
    Counted("feedline_samples", "counter", "", "Number of samples delivered to the training loop.", "samples"),
    Counted("feedline_bad_samples", "counter", "", "Number of samples that could not be used.", "bad_samples"),
    Counted("feedline_running_seconds", "counter", "seconds", "Time within epochs.", "wall_s"),
    Counted("feedline_wait_seconds", "counter", "seconds", "Time spent in next() of the epoch's iterator.", "wait_s"),
    Counted("feedline_threads", "gauge", "", "Threads that fill batches.", "threads"),
    Counted(
        "feedline_ready_batches",
        "gauge",
        "",
        "Number of complete batches that wait for the training loop.",
        "ready_batches",
    ),
    Counted("feedline_held_bytes", "gauge", "bytes", "Bytes of prefetched batches.", "held_bytes"),
    Counted("feedline_held_peak_bytes", "gauge", "bytes", "Largest size of prefetched batches.", "held_bytes_peak"),
    Counted("feedline_budget_bytes", "gauge", "bytes", "Limit on the size of prefetched batches.", "budget_bytes"),
)
STAGES = (
    Counted("feedline_stage_items", "counter", "", "Number of items produced by the stage.", "items"),
    Counted("feedline_stage_output_bytes", "counter", "bytes", "Number of bytes produced by the stage.", "bytes"),
    Counted("feedline_stage_busy_seconds", "counter", "seconds", "Working, summed over threads.", "busy_s"),
    Counted("feedline_stage_blocked_seconds", "counter", "seconds", "Waiting for room downstream.", "blocked_s"),
    Counted("feedline_stage_starved_seconds", "counter", "seconds", "Waiting for input.", "starved_s"),
)


def value(raw: Mapping[str, Any], counted: Counted) -> float | None:
    """Returns a total of one loader; None if it does not apply. Loaders of the engine count waits in their last
    stage.
    """
    found = raw.get(counted.key)
    if found is None and counted.key == "wait_s" and "consumer" in raw.get("stages", {}):
        found = raw["stages"]["consumer"]["starved_s"]
    return None if found is None else float(found)
