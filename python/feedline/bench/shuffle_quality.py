# SPDX-License-Identifier: Apache-2.0
"""Measures how well an order is shuffled: statistics of permutations, each with the value of a perfect shuffle.

An order is an int64 array of shape (n,): the sample at every position, each of 0 ... n - 1 once. "Perfect" is a
permutation drawn uniformly from all n!.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Order = npt.NDArray[np.int64]

# A perfect shuffle fails a statistic once in 10,000 times. So a table of forty is wrong once in 250; windows and sorted
# orders are off by hundreds of standard deviations.
FAILS_BELOW = 1e-4


class Statistic(NamedTuple):
    """A statistic of an order.

    Attributes:
        name: of the statistic, in two or three words.
        value, expected: the measured value, and its mean over perfect shuffles.
        p_value: the probability that a perfect shuffle deviates at least as much.
    """

    name: str
    value: float
    expected: float
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether a perfect shuffle could plausibly give this value."""
        return self.p_value >= FAILS_BELOW


def rank_correlation(order: Order) -> Statistic:
    """Spearman's correlation of position and sample: 1 is sorted, 0 is no trend. Variance 1 / (n - 1)."""
    value = _correlation(np.arange(len(order)), order)
    return Statistic("position and sample", value, 0.0, _two_sided(value, len(order)))


def epoch_correlation(first: Order, second: Order) -> Statistic:
    """Spearman's correlation of the positions that a sample has in two epochs: 1 is the same order twice."""
    value = _correlation(np.argsort(first), np.argsort(second))
    return Statistic("epoch and next epoch", value, 0.0, _two_sided(value, len(first)))


def neighbours_kept(order: Order) -> Statistic:
    """Share of adjacent positions whose samples are adjacent in the dataset, in either direction.

    Expected 2 / n. The count of such pairs is close to a Poisson number of mean 2 (n - 1) / n (Wolfowitz, "Note on
    runs of consecutive elements", Annals of Mathematical Statistics 15, 1944); more of them than that is what fails.
    """
    pairs = len(order) - 1
    kept = int(np.count_nonzero(np.abs(np.diff(order)) == 1))
    p_value = _poisson_at_least(kept, 2 * pairs / len(order))
    return Statistic("adjacent kept", kept / pairs, 2 / len(order), p_value)


def displacement(order: Order) -> Statistic:
    """Mean distance of a sample from its position in the dataset, over n: Spearman's footrule.

    Its sum has mean (n^2 - 1) / 3 and variance (n + 1)(2 n^2 + 7) / 45 (Diaconis and Graham, "Spearman's footrule as
    a measure of disarray", Journal of the Royal Statistical Society B 39, 1977).
    """
    n = len(order)
    total = float(np.abs(order - np.arange(n)).sum())
    mean, variance = (n * n - 1) / 3, (n + 1) * (2 * n * n + 7) / 45
    p_value = _normal_two_sided((total - mean) / math.sqrt(variance))
    return Statistic("distance moved", total / n**2, mean / n**2, p_value)


def step_length(order: Order) -> Statistic:
    """Mean distance of the samples at adjacent positions, over n: small for local shuffles.

    Expected (n + 1) / (3 n). For n independent uniform numbers, the mean |u - v| of neighbours has variance 1 / (15 n);
    for a permutation, the part that depends on the values alone vanishes: 4 Var(u^2 - u) / n = 1 / (45 n).
    """
    n = len(order)
    value = float(np.abs(np.diff(order)).mean()) / n
    expected = (n + 1) / (3 * n)
    p_value = _normal_two_sided((value - expected) / math.sqrt(2 / (45 * n)))
    return Statistic("step to next", value, expected, p_value)


def uniformity(orders: Iterable[Order]) -> Statistic:
    """Chi-square of how often each sample was at each position, over orders of one length n.

    In m perfect orders a cell holds m / n. Each order fills every row and every column once, so that the sum over the
    n^2 cells, times (n - 1) / n, has the chi-square distribution with (n - 1)^2 degrees of freedom. The value is that
    over its degrees of freedom: 1 is chance, far below 1 is as wrong as far above.
    """
    counts: Any = None
    orders_seen = 0
    for order in orders:
        if counts is None:
            counts = np.zeros((len(order), len(order)))
            places = np.arange(len(order))
        counts[places, order] += 1
        orders_seen += 1
    n = len(counts)
    freedom = (n - 1) ** 2
    expected = orders_seen / n
    value = float(((counts - expected) ** 2).sum()) / expected * (n - 1) / n / freedom
    return Statistic("sample at position", value, 1.0, _chi_square_p(value, freedom))


def displacement_quantiles(order: Order, shares: Iterable[float] = (0.1, 0.5, 0.9)) -> list[tuple[float, float, float]]:
    """Returns (share, quantile of the distance moved over n, that of a perfect shuffle: 1 - sqrt(1 - share))."""
    moved = np.abs(order - np.arange(len(order))) / len(order)
    return [(share, float(np.quantile(moved, share)), 1 - math.sqrt(1 - share)) for share in shares]


def window_order(size: int, window: int, seed: int) -> Order:
    """Simulates a shuffle buffer of `window` samples on a sorted stream: a random one leaves, the next one enters."""
    generator = random.Random(seed)
    order = np.empty(size, np.int64)
    held = list(range(min(window, size)))
    for position, entering in enumerate(range(len(held), size)):
        slot = int(generator.random() * window)
        order[position] = held[slot]
        held[slot] = entering
    generator.shuffle(held)
    order[size - len(held) :] = held
    return order


def _correlation(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """Pearson's correlation of numbers that are already ranks."""
    x, y = a - (len(a) - 1) / 2, b - (len(b) - 1) / 2
    return float(np.dot(x, y) / np.dot(x, x))


def _two_sided(correlation: float, n: int) -> float:
    return _normal_two_sided(correlation * math.sqrt(n - 1))


def _normal_two_sided(z: float) -> float:
    return math.erfc(abs(z) / math.sqrt(2))


def _poisson_at_least(count: int, mean: float) -> float:
    """P(N >= count); summed from above, where the terms shrink fast."""
    if count == 0:
        return 1.0
    term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
    total = 0.0
    while term > total * 1e-17 or count < mean:
        total += term
        count += 1
        term *= mean / count
        if term == 0.0:
            break
    return min(1.0, total)


def _chi_square_p(value: float, freedom: int) -> float:
    """Two-sided p-value by Wilson and Hilferty's cube root, which is accurate from a few tens of degrees of freedom."""
    spread = 2 / (9 * freedom)
    return _normal_two_sided((value ** (1 / 3) - (1 - spread)) / math.sqrt(spread))
