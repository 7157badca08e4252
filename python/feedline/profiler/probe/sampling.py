# SPDX-License-Identifier: Apache-2.0
"""Selects which of many short units of work are recorded if recording all of them would cost too much."""

from __future__ import annotations

import math
import random

_LEVELS = 10
_PERIOD = 1 << _LEVELS
MOST_UNSEEN = 2 * _PERIOD - 2  # from the first unit of one period to the last of the next
_MEMORY = 8  # units after which the mean forgets
_TURN = 567  # odd, so that each period has a different rotation


def _drawn() -> tuple[tuple[int, ...], ...]:
    """Returns, for each level, which number in each group of 2**level adjacent numbers of a period is recorded.

    The numbers recorded at each level are a subset of those at the level below.
    """
    draw, levels = random.Random(0), [tuple(range(_PERIOD))]
    while len(levels) <= _LEVELS:
        below = levels[-1]
        levels.append(tuple(below[at + draw.getrandbits(1)] for at in range(0, len(below), 2)))
    return tuple(levels)


_SEEN = _drawn()


class WorkSampler:
    """Selects numbered units at random at a given rate; selects the same units in each process.

    Work is periodic: if two workers finish at the same time, the loop waits long for one batch and not at all for the
    next. Fixed gaps could always hit the same phase, and gaps that depend on the last recorded unit would select short
    units only after short units. A loop and its workers, each at its own level, record the same batches as often as
    possible, since the numbers of each level include those of the next.
    """

    def __init__(self) -> None:
        self.level = 0  # one in 2**level is recorded
        self._mean_ns = 0.0
        self._number = -1  # number of the last recorded unit, if units have no numbers
        self._random = random.Random(0)  # a separate generator, because the script's generators must not be used

    def choose(self, took_ns: float, affordable_ns: float) -> None:
        """Sets the level after a unit of `took_ns`, so that each recorded unit represents `affordable_ns`."""
        took = max(float(took_ns), 1.0)
        self._mean_ns += (took - self._mean_ns) / _MEMORY if self._mean_ns else took
        stride = affordable_ns / self._mean_ns
        if stride <= 1:
            self.level = 0
            return
        part, power = math.frexp(stride)  # stride = part * 2**power, with part from 1/2 to 1
        above = self._random.random() < 2 * part - 1  # gives the correct stride on average
        self.level = min(power - 1 + above, _LEVELS)

    def first_from(self, number: int) -> int:
        """Returns the first recorded number that is not less than `number`."""
        if not self.level:
            return number
        found = _sampled_near(number, self.level)
        return found if found >= number else _sampled_near(number + (1 << self.level), self.level)

    def gap(self, took_ns: float, affordable_ns: float, number: int | None = None) -> int:
        """Returns the number of units to skip after this unit. `number`: the number of this unit; None to count units
        here.
        """
        self.choose(took_ns, affordable_ns)
        here = self._number + 1 if number is None else number
        unseen = self.first_from(here + 1) - here - 1
        self._number = here + unseen
        return unseen


def _sampled_near(number: int, level: int) -> int:
    """Returns the recorded number in the group of 2**level adjacent numbers that contains `number`."""
    turn = (number >> _LEVELS) * _TURN & (_PERIOD - 1)
    slot = _SEEN[level][((number & (_PERIOD - 1)) ^ turn) >> level]
    return (number & ~(_PERIOD - 1)) + (slot ^ turn)
