# SPDX-License-Identifier: Apache-2.0
"""Converts loaders' statistics to metric families, which prometheus_client formats as text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeAlias

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from .quantities import STAGES, TOTALS, Counted, Statistics, value

Family: TypeAlias = "CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily"


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
        yield from (_family(total, ["loader"]) for total in TOTALS)
        yield from (_family(counted, ["loader", "stage"]) for counted in STAGES)
        yield _latency()


def families(loaders: Statistics) -> Iterator[Family]:
    """Returns the families of several loaders, without families for which no loader has data."""
    for total in TOTALS:
        family = _family(total, ["loader"])
        for name, raw in loaders.items():
            if (number := value(raw, total)) is not None:
                family.add_metric([name], number)
        if family.samples:
            yield family
    stages = [
        ([name, stage], values) for name, raw in loaders.items() for stage, values in raw.get("stages", {}).items()
    ]
    if not stages:
        return
    for counted in STAGES:
        family = _family(counted, ["loader", "stage"])
        for labels, values in stages:
            family.add_metric(labels, values[counted.key])
        yield family
    latency = _latency()
    for labels, values in stages:
        latency.add_metric(labels, _buckets(values["latency_us"]), values["busy_s"])
    yield latency


def _family(counted: Counted, labels: list[str]) -> CounterMetricFamily | GaugeMetricFamily:
    made = CounterMetricFamily if counted.kind == "counter" else GaugeMetricFamily
    return made(counted.name, counted.help, labels=labels, unit=counted.unit)


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
