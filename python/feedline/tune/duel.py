# SPDX-License-Identifier: Apache-2.0
"""Two settings measured in turns, until it is clear whether one is faster.

A machine's speed drifts, and other programs come and go; both settings see the same of it if they are measured in turns
(A B, B A, A B ...) and only the ratio within a pair counts. A drift that lasts longer than a pair divides out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEAST_GAIN = 1.02  # a smaller one is not worth a change of settings, whatever its confidence
LEAST_GAIN_LAST = 1.05  # of a last look, which asks for less confidence
# What a cheaper setting may cost: surely not more than the first, and as far as is known not more than the second.
MOST_LOSS, LIKELY_LOSS = 0.95, 0.97
_LEAST_PAIRS = 2
FEW_PAIRS = 3  # with fewer, only what hardly varies can be decided
MOST_PAIRS, MOST_PAIRS_CHEAPER = 7, 10  # that two are as fast takes longer to show
# Student's t, two-sided, by degrees of freedom from 1: Abramowitz and Stegun, table 26.10.
_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
# A decision is taken at the first look that allows it: the looks on the way ask for 99 % (each errs towards a gain in
# 0.5 % of cases), the last one, when the time or the pairs are used up, for 95 %.
_T_99 = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707)


@dataclass(frozen=True)
class Comparison:
    """The challenger's speed over the champion's: geometric mean of the pairs, and its 95 % interval."""

    ratio: float
    low: float
    high: float
    pairs: int
    verdict: str  # "faster", "as fast", "slower", or "unclear"


class Turns:
    """The pairs of a duel so far."""

    def __init__(self) -> None:
        self.logs: list[float] = []

    def add(self, champion: float, challenger: float) -> None:
        """Speeds of one pair, in the same unit, above zero."""
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
        """What can be said now; `last`: there will be no further pair."""
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


def duel(
    champion: Callable[[], float],
    challenger: Callable[[], float],
    time_left: Callable[[int], bool],
    must_gain: bool = True,
    to_the_end: bool = False,
) -> Comparison:
    """Measures in turns until it is clear enough, for as long as `time_left(pairs so far)`, in at most ten pairs.

    Args:
        champion, challenger: measure once and return a speed, above zero.
        to_the_end: for a figure: as many pairs as there is time for, not only until it is clear who is faster.
        must_gain: the challenger is dearer, so only "faster" speaks for it; False: it is cheaper, and may be as fast.
    """
    turns, most = Turns(), MOST_PAIRS if must_gain else MOST_PAIRS_CHEAPER
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


def _settled(turns: Turns, must_gain: bool) -> bool:
    high = turns.interval(_T_99)[1]
    if must_gain:
        return turns.verdict(last=False) == "faster" or high < LEAST_GAIN
    if len(turns.logs) >= FEW_PAIRS:
        high = turns.interval(_T_95)[1]
    return turns.is_no_loss() or high < LIKELY_LOSS
