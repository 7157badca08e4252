# SPDX-License-Identifier: Apache-2.0
"""Means of measurements with their 95 % intervals, by Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence

_BLOCKS = 8
# Student's t, two-sided, by degrees of freedom; from 30 on the normal distribution is near enough
_T_95 = (
    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
    2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05,
)  # fmt: skip
_T_NORMAL = 1.96


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """(mean, low, high) of values, at least one, that are not negative; one value is its own interval."""
    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return mean, mean, mean
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    t = _T_95[count - 2] if count - 2 < len(_T_95) else _T_NORMAL
    half = t * spread / math.sqrt(count)
    return mean, max(mean - half, 0.0), mean + half


def rate_interval(done: Sequence[tuple[float, float]], together: int = 1) -> tuple[float, float, float]:
    """(mean, low, high) of amounts per second; `done`: (time in s, amount that was done then), in order, two at least.

    The first only begins the time. Neighbours are not independent, so the interval is that of blocks of them; of work
    that arrives by so many `together`, as from workers that began at one time, a block holds whole rounds.
    """
    whole = sum(amount for _, amount in done[1:]) / max(done[-1][0] - done[0][0], 1e-9)
    rounds = (len(done) - 1) // max(together, 1)
    blocks = min(_BLOCKS, rounds // 2)
    if blocks < 2:
        return whole, whole, whole
    size = rounds // blocks * max(together, 1)
    rates = []
    for block in range(blocks):
        part = done[block * size : (block + 1) * size + 1]
        rates.append(sum(amount for _, amount in part[1:]) / max(part[-1][0] - part[0][0], 1e-9))
    centre, low, high = interval(rates)
    return whole, max(whole - (centre - low), 0.0), whole + (high - centre)
