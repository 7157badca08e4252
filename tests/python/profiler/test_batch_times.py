# SPDX-License-Identifier: Apache-2.0
"""The model's input from a run's events: how batches differ, and the additional time at the start of an epoch."""

import pytest

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event
from feedline.profiler.summary import batch_times
from feedline.profiler.summary.wait_percentiles import wait_percentiles

MS = 1_000_000


def event(kind, begin, wall, cpu=0, b=0):
    return Event(kind, 1, begin * MS, wall * MS, cpu * MS, 0, b)


def test_times_are_in_the_order_of_their_begin_and_in_parts_of_their_mean():
    tasks = [event(events.WORK, 100 - n, 10 + 20 * (n == 3)) for n in range(20)]
    times = batch_times.times_of(tasks)
    assert sum(times) == pytest.approx(20) and times.index(max(times)) == 16  # the fourth in the list began late
    assert times[0] == pytest.approx(10 / 11)


def test_running_batches_are_recognised_by_the_cpus_clock():
    """On a busy machine, one of them waits; it costs as much as the others."""
    tasks = [event(events.WORK, n, 10 if n != 5 else 25, 10) for n in range(20)]
    assert batch_times.times_of(tasks) == (1.0,) * 20
    assert batch_times.times_of(tasks[:15]) == ()


def epoch(number, order, first, others, at):
    """iter() and waits without workers."""
    begin = [event(events.ITER, at, order, order, number), event(events.WAIT, at + 500, first, first)]
    return begin + [event(events.WAIT, at + 600 + n, others, others) for n in range(5)]


def test_an_epochs_order_is_what_its_begin_costs_more_than_a_batch():
    twice = epoch(0, 900, 4, 4, 0) + epoch(1, 50, 24, 4, 2000) + epoch(2, 70, 24, 4, 4000)
    assert batch_times.order_ms(twice) == pytest.approx(60 + 20)  # not that of the first epoch, which includes starts
    assert batch_times.order_ms(epoch(0, 900, 4, 4, 0)) == 0.0
    assert batch_times.order_ms([]) == 0.0


def cycle(at, wait, represents=1):
    """A step, and the wait after it."""
    return [event(events.STEP, at, 1, b=represents), event(events.WAIT, at + 1, wait)]


def test_percentiles_of_waits_are_without_the_first_batch_of_an_epoch():
    begin = [event(events.ITER, 0, 1), event(events.WAIT, 1, 9000)]
    waits = [one for number in range(100) for one in cycle(10 + number, number + 1)]
    found = wait_percentiles([*begin, *waits, event(events.LAST, 990, 1), *begin])
    assert found == {"p50": 50, "p90": 90, "p99": 99, "max": 100}
    assert wait_percentiles(begin) is None and wait_percentiles([]) is None


def test_a_recorded_wait_counts_for_those_that_it_represents():
    loop = [event(events.ITER, 0, 1), event(events.WAIT, 1, 5), *cycle(10, 1, 95), *cycle(20, 70, 5)]
    assert wait_percentiles(loop) == {"p50": 1, "p90": 1, "p99": 70, "max": 70}
