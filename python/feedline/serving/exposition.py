# SPDX-License-Identifier: Apache-2.0
"""A loader's statistics as OpenMetrics text, version 1.0.0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Family(NamedTuple):
    """A metric: its name ends with its unit, if it has one."""

    name: str
    kind: str  # "counter", "gauge" or "histogram"
    unit: str
    help: str
    key: str  # in the engine's statistics


_TOTALS = (
    Family("feedline_batches", "counter", "", "Batches delivered to the training loop.", "batches"),
    Family("feedline_samples", "counter", "", "Samples delivered to the training loop.", "samples"),
    Family("feedline_bad_samples", "counter", "", "Samples that could not be used.", "bad_samples"),
    Family("feedline_running_seconds", "counter", "seconds", "Time within epochs.", "wall_s"),
    Family("feedline_wait_seconds", "counter", "seconds", "Time in next() of the epoch's iterator.", "wait_s"),
    Family("feedline_threads", "gauge", "", "Threads that fill batches.", "threads"),
    Family("feedline_ready_batches", "gauge", "", "Complete batches that wait for the training loop.", "ready_batches"),
    Family("feedline_held_bytes", "gauge", "bytes", "Batches held ahead.", "held_bytes"),
    Family("feedline_held_peak_bytes", "gauge", "bytes", "The most that was held ahead.", "held_bytes_peak"),
    Family("feedline_budget_bytes", "gauge", "bytes", "What may be held ahead.", "budget_bytes"),
)
_STAGES = (
    Family("feedline_stage_items", "counter", "", "Items that the stage put out.", "items"),
    Family("feedline_stage_output_bytes", "counter", "bytes", "Bytes that the stage put out.", "bytes"),
    Family("feedline_stage_busy_seconds", "counter", "seconds", "Working, summed over threads.", "busy_s"),
    Family("feedline_stage_blocked_seconds", "counter", "seconds", "Waiting for room downstream.", "blocked_s"),
    Family("feedline_stage_starved_seconds", "counter", "seconds", "Waiting for input.", "starved_s"),
)
_LATENCY = Family("feedline_stage_latency_seconds", "histogram", "seconds", "Time per item of the stage.", "latency_us")


def text(loaders: Mapping[str, Mapping[str, Any]]) -> str:
    """The exposition of the statistics of several loaders, by their names; what none of them has is left out."""
    lines: list[str] = []
    for family in _TOTALS:
        having = {name: raw[family.key] for name, raw in loaders.items() if raw.get(family.key) is not None}
        if having:
            lines += _head(family)
            lines += [_sample(family, {"loader": name}, value) for name, value in having.items()]
    stages = [
        ({"loader": name, "stage": stage}, values)
        for name, raw in loaders.items()
        for stage, values in raw.get("stages", {}).items()
    ]
    if not stages:
        return "\n".join([*lines, "# EOF", ""])
    for family in _STAGES:
        lines += _head(family)
        lines += [_sample(family, labels, values[family.key]) for labels, values in stages]
    lines += _head(_LATENCY)
    for labels, values in stages:
        lines += _histogram(labels, values[_LATENCY.key], values["busy_s"])
    return "\n".join([*lines, "# EOF", ""])


def _head(family: Family) -> Iterable[str]:
    yield f"# TYPE {family.name} {family.kind}"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {family.help}"


def _sample(family: Family, labels: Mapping[str, str], value: float) -> str:
    return f"{family.name}{'_total' if family.kind == 'counter' else ''}{_labels(labels)} {value}"


def _histogram(labels: Mapping[str, str], counts: list[int], spent_s: float) -> Iterable[str]:
    """`counts[b]`: items of [2^b, 2^(b+1)) microseconds, all longer ones in the last."""
    below = 0
    for bucket, count in enumerate(counts):
        below += count
        bound = "+Inf" if bucket == len(counts) - 1 else str(2.0 ** (bucket + 1) / 1e6)
        yield f"{_LATENCY.name}_bucket{_labels({**labels, 'le': bound})} {below}"
    yield f"{_LATENCY.name}_count{_labels(labels)} {below}"
    yield f"{_LATENCY.name}_sum{_labels(labels)} {spent_s}"


def _labels(labels: Mapping[str, str]) -> str:
    escaped = {
        name: value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') for name, value in labels.items()
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"
