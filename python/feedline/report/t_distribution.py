# SPDX-License-Identifier: Apache-2.0
"""Student's t distribution, for intervals from few measurements, implemented without a statistics library."""

from __future__ import annotations

import math

_MOST_FREEDOM = 200  # from here on, t is within 1 % of the normal distribution


def quantile(probability: float, freedom: float) -> float:
    """Returns the quantile of t for `probability` (0.5 to 1, exclusive); `freedom` degrees of freedom (at least 1) are
    rounded down to an integer, which makes intervals wider.
    """
    whole = min(max(int(freedom), 1), _MOST_FREEDOM)
    low, high = 0.0, 1.0
    while cumulative(high, whole) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if cumulative(middle, whole) < probability else (low, middle)
    return high


def cumulative(t: float, freedom: int) -> float:
    """Returns the probability that t is at most `t` >= 0, by Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= square * (k - 1) / k
        total += term
    within = (angle + sine * total) * 2 / math.pi if odd else sine * total
    return 0.5 + within / 2
