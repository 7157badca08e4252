# SPDX-License-Identifier: Apache-2.0
"""Which of many short units of work are recorded, where an event for each would cost too much."""

from __future__ import annotations

import random

MOST_UNSEEN = 1023
_MEMORY = 8  # units over which the mean forgets


class Pace:
    """Gaps at random around what the mean unit allows.

    Work has a rhythm: two workers that finish side by side make the loop wait long for one batch and not at all for the
    next. Gaps of one length would meet the same beat every time; and gaps that follow from the unit that was just seen
    would meet short units after short ones and never after long ones.
    """

    def __init__(self) -> None:
        self._mean_ns = 0.0
        self._random = random.Random(0)  # its own: the script's numbers are the script's

    def gap(self, took_ns: int, affordable_ns: float) -> int:
        """How many units pass unseen after one of `took_ns`, if each that is seen is to stand for `affordable_ns`."""
        took = max(float(took_ns), 1.0)
        self._mean_ns += (took - self._mean_ns) / _MEMORY if self._mean_ns else took
        mean = affordable_ns / self._mean_ns - 1
        if mean <= 0:
            return 0
        drawn = self._random.random() * 2 * mean + self._random.random()  # cut to a whole number, on average `mean`
        return min(int(drawn), MOST_UNSEEN)
