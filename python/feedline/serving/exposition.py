# SPDX-License-Identifier: Apache-2.0
"""Converts loaders' statistics to metric families, which prometheus_client formats as text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

Statistics: TypeAlias = Mapping[str, Mapping[str, Any]]  # of loaders by name, in the form of the engine or the drop-in
Family: TypeAlias = "CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily"


class Counted(NamedTuple):
    """A value in the statistics, and the metric that exposes it. The name of the metric ends with its unit, if it has
    one.
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    help: str
    key: str  # in the statistics

    def family(self, labels: list[str]) -> CounterMetricFamily | GaugeMetricFamily:
        made = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        return made(self.name, self.help, labels=labels, unit=self.unit)


_TOTALS = (
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
_STAGES = (
    Counted("feedline_stage_items", "counter", "", "Number of items produced by the stage.", "items"),
    Counted("feedline_stage_output_bytes", "counter", "bytes", "Number of bytes produced by the stage.", "bytes"),
    Counted("feedline_stage_busy_seconds", "counter", "seconds", "Working, summed over threads.", "busy_s"),
    Counted("feedline_stage_blocked_seconds", "counter", "seconds", "Waiting for room downstream.", "blocked_s"),
    Counted("feedline_stage_starved_seconds", "counter", "seconds", "Waiting for input.", "starved_s"),
)


def registry(statistics: Callable[[], Statistics]) -> CollectorRegistry:
    """Collects the metrics of only these loaders; `statistics` is called for each response."""
    made = CollectorRegistry()
    made.register(_Loaders(statistics))
    return made


class _Loaders(Collector):
    def __init__(self, statistics: Callable[[], Statistics]) -> None:
        self._statistics = statistics

    def collect(self) -> Iterator[Family]:
        return families(self._statistics())

    def describe(self) -> Iterator[Family]:
        """Returns all possible families, since a client may request some by name."""
        yield from (total.family(["loader"]) for total in _TOTALS)
        yield from (counted.family(["loader", "stage"]) for counted in _STAGES)
        yield _latency()


def families(loaders: Statistics) -> Iterator[Family]:
    """Returns the families of several loaders, without families for which no loader has data."""
    for total in _TOTALS:
        family = total.family(["loader"])
        for name, raw in loaders.items():
            if raw.get(total.key) is not None:
                family.add_metric([name], raw[total.key])
        if family.samples:
            yield family
    stages = [
        ([name, stage], values) for name, raw in loaders.items() for stage, values in raw.get("stages", {}).items()
    ]
    if not stages:
        return
    for counted in _STAGES:
        family = counted.family(["loader", "stage"])
        for labels, values in stages:
            family.add_metric(labels, values[counted.key])
        yield family
    latency = _latency()
    for labels, values in stages:
        latency.add_metric(labels, _buckets(values["latency_us"]), values["busy_s"])
    yield latency


def _latency() -> HistogramMetricFamily:
    return HistogramMetricFamily(
        "feedline_stage_latency_seconds",
        "Time that the stage takes per item.",
        labels=["loader", "stage"],
        unit="seconds",
    )


def _buckets(counts: list[int]) -> list[tuple[str, float]]:
    """Returns a histogram. `counts[b]`: number of items with times in [2^b, 2^(b+1)) microseconds; the last bucket
    includes all longer times.
    """
    last = len(counts) - 1
    bounds = ["+Inf" if bucket == last else str(2.0 ** (bucket + 1) / 1e6) for bucket in range(len(counts))]
    return list(zip(bounds, itertools.accumulate(counts), strict=True))
