# SPDX-License-Identifier: Apache-2.0
"""Compares two settings with alternating measurements until one is significantly faster.

A machine's speed drifts, and other programs start and stop. Alternating measurements (A B, B A, A B ...) expose both
settings to the same conditions, and only the ratio within each pair counts. Drifts that last longer than a pair cancel
out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEAST_GAIN = 1.02  # smaller gains are not worth a change of settings, whatever their confidence
LEAST_GAIN_LAST = 1.05  # for the last look, which requires less confidence
# Limits on a cheaper setting's loss: of the interval's bound, and of the estimate.
MOST_LOSS, LIKELY_LOSS = 0.95, 0.97
_LEAST_PAIRS = 2
FEW_PAIRS = 3  # fewer pairs suffice only for measurements that hardly vary
MOST_PAIRS, MOST_PAIRS_CHEAPER = 7, 10  # showing that two are equally fast takes longer
# Student's t, two-sided, by degrees of freedom from 1: Abramowitz and Stegun, table 26.10.
_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
# The comparison stops at the first look that allows a decision. Interim looks require 99 % confidence (each reports a
# false gain in 0.5 % of cases); the last one, when time or pairs are used up, requires 95 %.
_T_99 = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707)


@dataclass(frozen=True)
class Comparison:
    """The challenger's speed relative to the champion's: geometric mean of the pairs, with its 95 % interval."""

    ratio: float
    low: float
    high: float
    pairs: int
    verdict: str  # "faster", "as fast", "slower", or "unclear"


class Rounds:
    """An A/B comparison with the pairs measured so far."""

    def __init__(self) -> None:
        self.logs: list[float] = []

    def add(self, champion: float, challenger: float) -> None:
        """Adds the speeds of one pair, which must be positive and have the same unit."""
        self.logs.append(math.log(challenger / champion))

    def interval(self, quantiles: Sequence[float]) -> tuple[float, float]:
        count = len(self.logs)
        if count < 2:
            return 0.0, math.inf
        mean = sum(self.logs) / count
        deviation = math.sqrt(sum((log - mean) ** 2 for log in self.logs) / (count - 1))
        half = quantiles[min(count - 2, len(quantiles) - 1)] * deviation / math.sqrt(count)
        return math.exp(mean - half), math.exp(min(mean + half, 700.0))

    def ratio(self) -> float:
        return math.exp(sum(self.logs) / len(self.logs)) if self.logs else 1.0

    def verdict(self, last: bool) -> str:
        """Returns the current result; `last`: whether no further pair follows."""
        low, high = self.interval(_T_95 if last else _T_99)
        if low > 1 and self.ratio() >= (LEAST_GAIN_LAST if last else LEAST_GAIN):
            return "faster"
        if high < MOST_LOSS:
            return "slower"
        return "as fast" if self.is_no_loss() else "unclear"

    def is_no_loss(self) -> bool:
        return self.interval(_T_95)[0] > MOST_LOSS and self.ratio() > LIKELY_LOSS

    def comparison(self, verdict: str) -> Comparison:
        low, high = self.interval(_T_95)
        return Comparison(self.ratio(), low, high, len(self.logs), verdict)


def run_ab_test(
    champion: Callable[[], float],
    challenger: Callable[[], float],
    time_left: Callable[[int], bool],
    must_gain: bool = True,
    to_the_end: bool = False,
) -> Comparison:
    """Alternates measurements until the result is clear, while `time_left(pairs so far)` is true, for at most ten
    pairs.

    Args:
        champion, challenger: functions that measure once and return a positive speed.
        to_the_end: whether to continue for as many pairs as time allows, to estimate the ratio precisely.
        must_gain: whether only "faster" is a success, because the challenger costs more; otherwise the challenger is
        cheaper, and "as fast" is also a success.
    """
    turns, most = Rounds(), MOST_PAIRS if must_gain else MOST_PAIRS_CHEAPER
    while True:
        if len(turns.logs) % 2 == 0:
            first, second = champion(), challenger()
        else:
            second, first = challenger(), champion()
        turns.add(first, second)
        if len(turns.logs) >= _LEAST_PAIRS and not to_the_end and _settled(turns, must_gain):
            return turns.comparison(turns.verdict(last=False))
        if len(turns.logs) == most or not time_left(len(turns.logs)):
            return turns.comparison(turns.verdict(last=True))


def _settled(turns: Rounds, must_gain: bool) -> bool:
    high = turns.interval(_T_99)[1]
    if must_gain:
        return turns.verdict(last=False) == "faster" or high < LEAST_GAIN
    if len(turns.logs) >= FEW_PAIRS:
        high = turns.interval(_T_95)[1]
    return turns.is_no_loss() or high < LIKELY_LOSS
