# SPDX-License-Identifier: Apache-2.0
"""Measures all copy methods in alternating rounds, so that disturbances affect all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...record import series
from .link import BYTES, WAYS, Link, Way

_LARGE = (64 << 20, 256 << 20)  # copies that show the link's limit
_LARGE_TURNS = 5
_BATCHES = 12  # of a loop
_STEPS = 4  # measured separately in a round: a step is much longer than a copy of bytes, and so is its noise
_FEWEST, _MOST = 5, 60  # rounds
_LONGER = 1.5  # times the slowest method's copy is the step's length, so that all of a copy can overlap


@dataclass(frozen=True)
class Measured:
    """A mean with its 95 % confidence interval; None if there are too few values."""

    value: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: list[float]) -> Measured:
        return cls(statistics.fmean(values), *series.rate_interval(values, [1.0] * len(values)))

    def as_json(self) -> dict[str, float | None]:
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass
class Times:
    """Times of one copy method in seconds, one per round."""

    copy: list[float]
    step: list[float]
    batch: list[float]  # of the loop, copy and step together

    def hidden(self) -> Measured:
        """Fraction of the copy time that overlaps with steps. The loop's first copy, which cannot overlap, is
        excluded.
        """
        shares = []
        for copy, step, batch in zip(self.copy, self.step, self.batch, strict=True):
            beyond = _BATCHES * (batch - step) - copy
            shares.append(1 - beyond / ((_BATCHES - 1) * copy))
        mean = Measured.of(shares)  # clip only the mean: clipping single values to 0 and 1 would bias it
        low, high = (None if end is None else min(max(end, 0.0), 1.0) for end in (mean.low, mean.high))
        return Measured(min(max(mean.value, 0.0), 1.0), low, high)


def measure(
    link: Link,
    *,
    batch_size: int,
    size: int,
    seconds: float,
    large: Sequence[int] = _LARGE,
    show: Callable[[str], None] = lambda _phase: None,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Returns the output of ``feedline bench --device``.

    Args:
        batch_size, size: number of RGB images per batch, and their height and width in pixels.
        seconds: total duration of the rounds; at least 5 and at most 60 rounds are run.
        large: sizes in bytes of the copies that measure the link's limit.
        show: called with the name of each phase when it starts.
    """
    values = 3 * batch_size * size * size
    show("the link's limit")
    limit = _limit(link, large)
    show("a step")
    link.set_step(_LONGER * link.copy_s(values * BYTES["float32"], False))
    times = {way: Times([], [], []) for way in WAYS}
    for way in WAYS:
        link.loop_s(way, 2)  # the first use allocates memory and compiles kernels
    until, rounds = clock() + seconds, 0
    while rounds < _FEWEST or (clock() < until and rounds < _MOST):
        show(f"round {rounds + 1}")
        for way in WAYS if rounds % 2 == 0 else reversed(WAYS):
            times[way].copy.append(link.copy_s(values * BYTES[way.elements], way.pinned))
            times[way].step.append(statistics.fmean(link.step_s(way) for _ in range(_STEPS)))
            times[way].batch.append(link.loop_s(way, _BATCHES) / _BATCHES)
        rounds += 1
    return {
        "device": link.name,
        "unified_memory": link.unified,
        "batch_size": batch_size,
        "size": size,
        "rounds": rounds,
        "limit_bytes_per_s": limit.as_json(),
        "ways": {way.name: _of_way(way, values, took, limit.value) for way, took in times.items()},
        "compared": _compared({way.name: took for way, took in times.items()}),
    }


def _limit(link: Link, large: Sequence[int]) -> Measured:
    """Returns the bandwidth of the fastest large page-locked copy, in bytes per second."""
    found = []
    for size in large:
        link.copy_s(size, True)  # allocates the memory first
        found.append(Measured.of([size / link.copy_s(size, True) for _ in range(_LARGE_TURNS)]))
    return max(found, key=lambda measured: measured.value)


def _of_way(way: Way, values: int, took: Times, limit: float) -> dict[str, Any]:
    size = values * BYTES[way.elements]
    rate = Measured.of([size / seconds for seconds in took.copy])
    return {
        "pinned": way.pinned,
        "stream": way.stream,
        "elements": way.elements,
        "channels_last": way.channels_last,
        "bytes_per_batch": size,
        "copy_bytes_per_s": rate.as_json(),
        "share_of_limit": rate.value / limit,
        "copy_ms": Measured.of([1000 * one for one in took.copy]).as_json(),
        "step_ms": Measured.of([1000 * one for one in took.step]).as_json(),
        "batch_ms": Measured.of([1000 * one for one in took.batch]).as_json(),
        "hidden": took.hidden().as_json(),
    }


def _compared(times: dict[str, Times]) -> dict[str, dict[str, float | None]]:
    """Returns the speed of the second method relative to the first, for each round."""

    def ratio(one: list[float], other: list[float]) -> dict[str, float | None]:
        return Measured.of([a / b for a, b in zip(one, other, strict=True)]).as_json()

    return {
        "pinning_a_copy": ratio(times["pageable"].copy, times["pinned"].copy),
        "pinning_a_loop": ratio(times["pageable"].batch, times["pinned"].batch),
        "a_stream": ratio(times["pinned"].batch, times["pinned_stream"].batch),
        "bytes_for_floats": ratio(times["pinned_stream"].copy, times["uint8_stream"].copy),
        "channels_last": ratio(times["uint8_stream"].step, times["channels_last_stream"].step),
    }
