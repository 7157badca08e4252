# SPDX-License-Identifier: Apache-2.0
"""What the model takes from a run's events: how batches differ, and what an epoch's begin adds."""

import pytest

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event
from feedline.profiler.summary import batch_times

MS = 1_000_000


def event(kind, begin, wall, cpu=0, b=0):
    return Event(kind, 1, begin * MS, wall * MS, cpu * MS, 0, b)


def test_times_are_in_the_order_of_their_begin_and_in_parts_of_their_mean():
    tasks = [event(events.WORK, 100 - n, 10 + 20 * (n == 3)) for n in range(20)]
    times = batch_times.times_of(tasks)
    assert sum(times) == pytest.approx(20) and times.index(max(times)) == 16  # the fourth to be listed began late
    assert times[0] == pytest.approx(10 / 11)


def test_running_batches_are_recognised_by_the_cpus_clock():
    """A busy machine makes one of them wait; it costs as much as the others."""
    tasks = [event(events.WORK, n, 10 if n != 5 else 25, 10) for n in range(20)]
    assert batch_times.times_of(tasks) == (1.0,) * 20
    assert batch_times.times_of(tasks[:15]) == ()


def epoch(number, order, first, others, at):
    """iter() and waits without workers."""
    begin = [event(events.ITER, at, order, order, number), event(events.WAIT, at + 500, first, first)]
    return begin + [event(events.WAIT, at + 600 + n, others, others) for n in range(5)]


def test_an_epochs_order_is_what_its_begin_costs_more_than_a_batch():
    twice = epoch(0, 900, 4, 4, 0) + epoch(1, 50, 24, 4, 2000) + epoch(2, 70, 24, 4, 4000)
    assert batch_times.order_ms(twice) == pytest.approx(60 + 20)  # not that of the first epoch, which pays for starts
    assert batch_times.order_ms(epoch(0, 900, 4, 4, 0)) == 0.0
    assert batch_times.order_ms([]) == 0.0
