# SPDX-License-Identifier: Apache-2.0
"""Means of measurements with 95 % intervals by Student's t, and comparisons of them.

For a single value, or too few values for two blocks, the interval is 0 to infinity.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any

_BLOCKS = 8
# Student's t, two-sided, by degrees of freedom; from 30 on the normal distribution is close enough
_T_95 = (
    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
    2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05,
)  # fmt: skip
_T_NORMAL = 1.96
UNKNOWN = (0.0, math.inf)
GAIN = 1.05  # ratio: smaller gains are not worth a change


class Shown(enum.Enum):
    """Result of comparing two measurements."""

    BETTER = "better"
    NOT_BETTER = "not better"
    UNDECIDED = "undecided"
    UNMEASURED = "not measured well enough"


Figure = tuple[float, float, float]  # mean, low, high


def is_known(low: float, high: float) -> bool:
    return math.isfinite(high) and math.isfinite(low)


def finite(value: Any) -> Any:
    """Converts infinity to None, which JSON can represent."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def interval_text(low: float, high: float, digits: int = 1) -> str:
    """Formats an interval for a terminal."""
    return f"[{low:.{digits}f}, {high:.{digits}f}]" if is_known(low, high) else "(not measured well enough)"


def shown(one: Figure, other: Figure) -> Shown:
    """Compares `one` with `other`: BETTER if `one` exceeds `other` by more than the factor GAIN, and its whole interval
    is above `other`.
    """
    if not is_known(*one[1:]) or not is_known(*other[1:]):
        return Shown.UNMEASURED
    if one[1] > other[0] and one[0] > GAIN * other[0]:
        return Shown.BETTER
    return Shown.NOT_BETTER if one[2] <= GAIN * other[0] or one[0] <= other[0] else Shown.UNDECIDED


def gain_over_fewer(figures: Mapping[int, Figure]) -> dict[int, Shown]:
    """Compares each number of workers with the best smaller number; only BETTER results can become the best."""
    best: Figure | None = None
    found: dict[int, Shown] = {}
    for workers, figure in sorted(figures.items()):
        if best is None:
            found[workers] = Shown.BETTER if is_known(*figure[1:]) else Shown.UNMEASURED
        else:
            found[workers] = shown(figure, best)
        best = figure if found[workers] is Shown.BETTER else best
    return found


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Returns (mean, low, high) of one or more non-negative values; a single value has no interval."""
    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return mean, *UNKNOWN
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    t = _T_95[count - 2] if count - 2 < len(_T_95) else _T_NORMAL
    half = t * spread / math.sqrt(count)
    return mean, max(mean - half, 0.0), mean + half


def rate_interval(done: Sequence[tuple[float, float]], together: int = 1) -> tuple[float, float, float]:
    """Returns (mean, low, high) of a rate; `done` has at least two pairs (time in s, amount done at that time), in
    order.

    The first pair only starts the clock. Adjacent values are not independent, so the interval is computed from blocks
    of them; if work finishes in groups of `together`, such as those of workers that start together, a block contains
    whole groups.
    """
    whole = sum(amount for _, amount in done[1:]) / max(done[-1][0] - done[0][0], 1e-9)
    rounds = (len(done) - 1) // max(together, 1)
    blocks = min(_BLOCKS, rounds // 2)
    if blocks < 2:
        return whole, *UNKNOWN
    size = rounds // blocks * max(together, 1)
    rates = []
    for block in range(blocks):
        part = done[block * size : (block + 1) * size + 1]
        rates.append(sum(amount for _, amount in part[1:]) / max(part[-1][0] - part[0][0], 1e-9))
    centre, low, high = interval(rates)
    return whole, max(whole - (centre - low), 0.0), whole + (high - centre)
