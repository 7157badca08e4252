# SPDX-License-Identifier: Apache-2.0
"""Means and their intervals: known values, and general properties."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedline.profiler.intervals import interval, rate_interval

numbers = st.floats(0.001, 1e6)


def test_the_interval_is_students():
    mean, low, high = interval([4.0, 5.0, 6.0])  # a standard error of 1/sqrt(3), and 4.30 for two degrees of freedom
    assert (mean, low, high) == (5.0, pytest.approx(5 - 4.30 / 3**0.5), pytest.approx(5 + 4.30 / 3**0.5))
    assert interval([7.0]) == (7.0, 0.0, math.inf)  # only one block


@given(st.lists(numbers, min_size=1, max_size=60), st.floats(0.5, 20))
def test_intervals_hold_their_mean_and_scale(values, factor):
    mean, low, high = interval(values)
    assert 0 <= low <= mean * (1 + 1e-9) and mean <= high * (1 + 1e-9)
    assert interval([factor * v for v in values])[0] == pytest.approx(factor * mean)


def test_an_even_pace_has_a_narrow_interval():
    mean, low, high = rate_interval([(0.1 * i, 2.0) for i in range(40)])
    assert mean == pytest.approx(20) and low == pytest.approx(20) and high == pytest.approx(20)


def test_what_arrives_together_is_counted_by_rounds():
    bursts = [(float(i // 4), 1.0) for i in range(25)]  # four at a time, every second
    assert rate_interval(bursts)[2] > 100  # a block within a burst takes no time
    mean, low, high = rate_interval(bursts, together=4)
    assert (mean, low, high) == (pytest.approx(4), pytest.approx(4), pytest.approx(4))


@given(st.lists(st.tuples(st.floats(0.001, 10), numbers), min_size=2, max_size=80), st.integers(1, 8))
def test_rates_are_within_their_intervals(gaps, together):
    done, now = [], 0.0
    for gap, amount in gaps:
        now += gap
        done.append((now, amount))
    mean, low, high = rate_interval(done, together)
    assert low <= mean * (1 + 1e-9) and mean <= high * (1 + 1e-9)
    assert mean == pytest.approx(sum(a for _, a in done[1:]) / (done[-1][0] - done[0][0]))
