# SPDX-License-Identifier: Apache-2.0
"""Only some short units of work are recorded; they must be representative, whatever the rhythm of the units."""

from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedline.profiler.probe import budget
from feedline.profiler.probe.sampling import MOST_UNSEEN, WorkSampler


def sees(pace, number):
    return pace.first_from(number) == number


def seen(units, affordable_ns):
    """Returns (mean of the recorded units, share of the units that was recorded)."""
    pace, gap, stride, weight, weighed, count, whole = WorkSampler(), 0, 1, 0, 0.0, 0, 0
    for took in units:
        whole += 1
        if gap:
            gap -= 1
            continue
        weight, weighed, count = weight + stride, weighed + stride * took, count + 1
        gap = pace.gap(took, affordable_ns)
        stride = gap + 1
    return weighed / weight, count / whole


@pytest.mark.parametrize(
    "rhythm", [(1_000_000, 100_000), (100_000, 1_000_000), (3_000_000, 50_000, 50_000), (200_000,)]
)
def test_a_rhythm_of_long_and_short_units_is_not_met_at_one_beat(rhythm):
    """Two workers that finish at the same time: a long wait, and none."""
    beat = cycle(rhythm)
    mean, share = seen([next(beat) for _ in range(30_000)], 5_000_000)
    true = sum(rhythm) / len(rhythm)
    assert mean == pytest.approx(true, rel=0.15)
    assert share == pytest.approx(true / 5_000_000, rel=0.3)  # and it costs the maximum


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=200), st.floats(0, 1e10))
def test_gaps_are_bounded_and_none_where_every_unit_is_affordable(units, affordable_ns):
    pace = WorkSampler()
    gaps = [pace.gap(took, affordable_ns) for took in units]
    assert all(0 <= gap <= MOST_UNSEEN for gap in gaps)
    if affordable_ns <= min(units):
        assert not any(gaps)


def test_a_pause_in_between_is_no_cost_of_an_event():
    """The garbage collector runs at any time, with the CPU of the thread that allocates."""
    calls = []

    def work():
        calls.append(None)
        until = budget.cpu_clock() + 30_000_000
        while len(calls) == 50 and budget.cpu_clock() < until:
            pass

    assert budget._cost_of(work) < 30_000_000 / len(calls) / 2


@pytest.mark.parametrize("level", [1, 3, 6, 10])
def test_of_numbers_side_by_side_one_is_seen_and_those_of_a_level_below_too(level):
    """The same key for a loop and its workers, so that they record the same batches."""
    pace, below, size = WorkSampler(), WorkSampler(), 2**level
    pace.level, below.level = level, level - 1
    chosen = [[n for n in range(begin, begin + size) if sees(pace, n)] for begin in range(0, 8192, size)]
    assert all(len(of_block) == 1 for of_block in chosen)
    assert all(sees(below, number) for (number,) in chosen)
    places = {number % size for (number,) in chosen}
    assert len(places) > min(size, len(chosen)) / 2  # at a random position in its block, so it follows no rhythm


def test_a_gap_ends_at_the_next_number_that_is_seen():
    pace, number = WorkSampler(), 17
    for _ in range(300):
        gap = pace.gap(1000, 37_000, number)
        assert not any(sees(pace, between) for between in range(number + 1, number + 1 + gap))
        assert sees(pace, number + 1 + gap)
        number += 1 + gap
    assert number / 300 == pytest.approx(37, rel=0.2)
