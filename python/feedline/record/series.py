# SPDX-License-Identifier: Apache-2.0
"""Summarizes measurements for a record as intervals, histograms and timelines of bounded size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

POINTS = 240  # of a timeline: more than a page shows
_PER_OCTAVE = 8  # a bucket is 9 % wide, or a multiple
_MOST_BUCKETS = 64
_BLOCKS = 10
# Student's t for 95 % by degrees of freedom from 1: Abramowitz and Stegun, table 26.10
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def rate_interval(counts: Sequence[float], seconds: Sequence[float]) -> tuple[float | None, float | None]:
    """Returns (low, high), the 95 % interval of the mean rate, or None if there is too little data.

    ``counts[i]`` items were completed in ``seconds[i]``, in sequence. Adjacent values are correlated, so the variance
    is computed from at most 10 blocks with similar total time (batch means), using Student's t.
    """
    total = sum(seconds)
    if total <= 0:
        return None, None
    blocks: list[list[float]] = [[0.0, 0.0] for _ in range(_BLOCKS)]
    passed = 0.0
    for count, length in zip(counts, seconds, strict=True):
        block = blocks[min(int(_BLOCKS * (passed + length / 2) / total), _BLOCKS - 1)]
        block[0] += count
        block[1] += length
        passed += length
    rates = [count / length for count, length in blocks if length > 0]
    if len(rates) < 3:
        return None, None
    mean = sum(rates) / len(rates)
    deviation = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1))
    half = _T[len(rates) - 2] * deviation / math.sqrt(len(rates))
    overall = sum(counts) / total
    return max(overall - half, 0.0), overall + half


def histogram(values: Iterable[float]) -> dict[str, list[Any]] | None:
    """Returns a histogram of milliseconds in buckets of equal ratio, in ascending order; values below 1 us count as 1
    us.
    """
    exponents = [math.floor(_PER_OCTAVE * math.log2(max(value, 1e-3))) for value in values if math.isfinite(value)]
    if not exponents:
        return None
    low, high = min(exponents), max(exponents)
    width = -(-(high - low + 1) // _MOST_BUCKETS)
    counts = [0] * ((high - low) // width + 1)
    for exponent in exponents:
        counts[(exponent - low) // width] += 1
    edges = [2 ** ((low + i * width) / _PER_OCTAVE) for i in range(len(counts) + 1)]
    return {"edges": edges, "counts": counts}


def points(times_s: Sequence[float], values: Sequence[float]) -> list[list[float]]:
    """Returns at most 240 rows ``[seconds, mean, largest]`` for periods of equal length; empty periods are omitted."""
    if not times_s:
        return []
    begin, length = min(times_s), max(times_s) - min(times_s)
    stretches: dict[int, list[float]] = {}
    for time, value in zip(times_s, values, strict=True):
        bucket = min(int(POINTS * (time - begin) / length), POINTS - 1) if length > 0 else 0
        total = stretches.setdefault(bucket, [0.0, 0.0, 0.0, value])
        total[0] += 1
        total[1] += time
        total[2] += value
        total[3] = max(total[3], value)
    return [[t / n, v / n, largest] for _, (n, t, v, largest) in sorted(stretches.items())]
