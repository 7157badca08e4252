# SPDX-License-Identifier: Apache-2.0
"""Which of many short units of work are recorded, where an event for each would cost too much."""

from __future__ import annotations

import math
import random

_LEVELS = 10
_PERIOD = 1 << _LEVELS
MOST_UNSEEN = 2 * _PERIOD - 2  # from the first of one period to the last of the next
_MEMORY = 8  # units over which the mean forgets
_TURN = 567  # odd: each period is turned another way


def _drawn() -> tuple[tuple[int, ...], ...]:
    """By level: of each 2**level numbers of a period that lie side by side, the one that is seen.

    The numbers of a level are among those of the level below.
    """
    draw, levels = random.Random(0), [tuple(range(_PERIOD))]
    while len(levels) <= _LEVELS:
        below = levels[-1]
        levels.append(tuple(below[at + draw.getrandbits(1)] for at in range(0, len(below), 2)))
    return tuple(levels)


_SEEN = _drawn()


class Pace:
    """Of units that have numbers, one in every so many, at random which; for each process the same ones.

    Work has a rhythm: two workers that finish side by side make the loop wait long for one batch and not at all for the
    next. Gaps of one length would meet the same beat every time; and gaps that follow from the unit that was just seen
    would meet short units after short ones and never after long ones. A loop and its workers, each at a level of its
    own, see the same batches as often as they can, as the one's are among the other's.
    """

    def __init__(self) -> None:
        self.level = 0  # one in 2**level is seen
        self._mean_ns = 0.0
        self._number = -1  # of the last unit seen, where units have no numbers of their own
        self._random = random.Random(0)  # its own: the script's numbers are the script's

    def choose(self, took_ns: float, affordable_ns: float) -> None:
        """Sets the level after a unit of `took_ns`, if each that is seen is to stand for `affordable_ns`."""
        took = max(float(took_ns), 1.0)
        self._mean_ns += (took - self._mean_ns) / _MEMORY if self._mean_ns else took
        stride = affordable_ns / self._mean_ns
        if stride <= 1:
            self.level = 0
            return
        part, power = math.frexp(stride)  # stride = part * 2**power, and part is from 1/2 to 1
        above = self._random.random() < 2 * part - 1  # so that the stride is right on average
        self.level = min(power - 1 + above, _LEVELS)

    def first_from(self, number: int) -> int:
        """The first number from this one on that is seen."""
        if not self.level:
            return number
        found = _seen_beside(number, self.level)
        return found if found >= number else _seen_beside(number + (1 << self.level), self.level)

    def gap(self, took_ns: float, affordable_ns: float, number: int | None = None) -> int:
        """How many units pass unseen after this one. `number`: its own; None: units are counted here."""
        self.choose(took_ns, affordable_ns)
        here = self._number + 1 if number is None else number
        unseen = self.first_from(here + 1) - here - 1
        self._number = here + unseen
        return unseen


def _seen_beside(number: int, level: int) -> int:
    """The one that is seen of the 2**level numbers that lie side by side with this one."""
    turn = (number >> _LEVELS) * _TURN & (_PERIOD - 1)
    place = _SEEN[level][((number & (_PERIOD - 1)) ^ turn) >> level]
    return (number & ~(_PERIOD - 1)) + (place ^ turn)
