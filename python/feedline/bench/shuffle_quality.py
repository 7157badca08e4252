# SPDX-License-Identifier: Apache-2.0
"""Measures how well an order is shuffled: statistics of the permutation, each with the expected value for a perfect
shuffle.

An order is an int64 array of shape (n,) with the sample at each position; each of 0 ... n - 1 occurs once. A perfect
shuffle is a permutation drawn uniformly from all n!.
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
    """A statistic of a sample order.

    Attributes:
        name: two or three words.
        value, expected: the measured value, and its mean over perfect shuffles.
        p_value: the probability that a perfect shuffle deviates at least as much.
    """

    name: str
    value: float
    expected: float
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether a perfect shuffle could plausibly have this value."""
        return self.p_value >= FAILS_BELOW


def rank_correlation(order: Order) -> Statistic:
    """Spearman's correlation of position and sample: 1 for a sorted order, near 0 if there is no trend. Variance 1 / (n
    - 1).
    """
    value = _correlation(np.arange(len(order)), order)
    return Statistic("position and sample", value, 0.0, _two_sided(value, len(order)))


def epoch_correlation(first: Order, second: Order) -> Statistic:
    """Spearman's correlation of the positions of each sample in two epochs: 1 if both epochs have the same order."""
    value = _correlation(np.argsort(first), np.argsort(second))
    return Statistic("epoch and next epoch", value, 0.0, _two_sided(value, len(first)))


def neighbours_kept(order: Order) -> Statistic:
    """Share of adjacent positions whose samples are also adjacent in the dataset, in either direction.

    Expected 2 / n. The number of adjacent pairs is approximately Poisson-distributed with mean 2 (n - 1) / n
    (Wolfowitz, "Note on runs of consecutive elements", Annals of Mathematical Statistics 15, 1944); the p-value is the
    probability of a count at least as high.
    """
    pairs = len(order) - 1
    adjacent = int(np.count_nonzero(np.abs(np.diff(order)) == 1))
    p_value = _poisson_at_least(adjacent, 2 * pairs / len(order))
    return Statistic("adjacent kept", adjacent / pairs, 2 / len(order), p_value)


def displacement(order: Order) -> Statistic:
    """Mean distance of a sample from its position in the dataset, divided by n (Spearman's footrule).

    The sum of distances has mean (n^2 - 1) / 3 and variance (n + 1)(2 n^2 + 7) / 45 (Diaconis and Graham, "Spearman's
    footrule as a measure of disarray", Journal of the Royal Statistical Society B 39, 1977).
    """
    n = len(order)
    total = float(np.abs(order - np.arange(n)).sum())
    mean, variance = (n * n - 1) / 3, (n + 1) * (2 * n * n + 7) / 45
    p_value = _normal_two_sided((total - mean) / math.sqrt(variance))
    return Statistic("distance moved", total / n**2, mean / n**2, p_value)


def step_length(order: Order) -> Statistic:
    """Mean distance between the samples at adjacent positions, divided by n; small for local shuffles.

    Expected (n + 1) / (3 n). For n independent uniform numbers, the mean |u - v| of neighbours has variance 1 / (15 n);
    for a permutation, the part that depends only on the set of values vanishes: 4 Var(u^2 - u) / n = 1 / (45 n).
    """
    n = len(order)
    value = float(np.abs(np.diff(order)).mean()) / n
    expected = (n + 1) / (3 * n)
    p_value = _normal_two_sided((value - expected) / math.sqrt(2 / (45 * n)))
    return Statistic("step to next", value, expected, p_value)


def uniformity(orders: Iterable[Order]) -> Statistic:
    """Chi-square statistic of how often each sample occurs at each position, over orders of equal length n.

    With m perfect orders, the expected count of a cell is m / n. Each order adds one to one cell of each row and
    column, so the sum over the n^2 cells, times (n - 1) / n, has the chi-square distribution with (n - 1)^2 degrees of
    freedom. The value is this chi-square sum divided by its degrees of freedom: it is about 1 for perfect shuffles, and
    a value far below 1 is as suspicious as one far above.
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
    """Returns for each share: the share, this quantile of the samples' displacements divided by n, and the quantile
    that a perfect shuffle would have, 1 - sqrt(1 - share).
    """
    moved = np.abs(order - np.arange(len(order))) / len(order)
    return [(share, float(np.quantile(moved, share)), 1 - math.sqrt(1 - share)) for share in shares]


def window_order(size: int, window: int, seed: int) -> Order:
    """Simulates a shuffle buffer of `window` samples on a sorted stream: a random sample leaves, the next one
    enters.
    """
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
    """P(N >= count), summed upwards from `count`, because the terms decrease quickly in this direction."""
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
    """Two-sided p-value by the Wilson-Hilferty cube-root approximation, which is accurate from a few tens of degrees of
    freedom.
    """
    spread = 2 / (9 * freedom)
    return _normal_two_sided((value ** (1 / 3) - (1 - spread)) / math.sqrt(spread))
