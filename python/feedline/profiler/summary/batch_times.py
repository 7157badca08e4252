# SPDX-License-Identifier: Apache-2.0
"""Inputs to the loop model: the variation in batch times, and the extra cost of an epoch's first batch."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Sequence

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event
from feedline.profiler.recordings import ProcessRecord
from feedline.profiler.summary.tasks import RECORDED, with_unseen

_FEWEST, _MOST = 16, 512


def times_of(made: Iterable[Event]) -> tuple[float, ...]:
    """Returns the production times of the last batches in order, relative to their mean; empty if there are too few.

    `made`: tasks of workers; without workers, the loop's events, whose waits include batch production.
    """
    kinds = (*RECORDED, events.WAIT)
    last = sorted((event for event in made if event.kind in kinds), key=lambda event: event.begin_ns)[-_MOST:]
    if len(last) < _FEWEST:
        return ()
    by_cpu = _run(last)
    times = [event.cpu_ns if by_cpu else event.wall_ns for event in last]
    mean = max(statistics.fmean(times), 1)
    return tuple(time / mean for time in times)


def times_of_tasks(workers: Iterable[ProcessRecord]) -> tuple[float, ...]:
    """As times_of. Unrecorded tasks are drawn at random from the recorded tasks of the same worker."""
    lists = [process.events for process in workers]
    if sum(event.kind in RECORDED for recorded in lists for event in recorded) < _FEWEST:
        return ()
    return times_of(task for recorded in lists for task in _last_tasks(recorded))


def _last_tasks(recorded: Sequence[Event]) -> list[Event]:
    """Returns the tasks of one worker, most recent first."""
    typical = [event for event in recorded if event.kind == events.WORK]
    draw, found = random.Random(0), list[Event]()
    for event, passed in with_unseen(recorded):
        found.append(event)
        for number in range(1, min(passed, _MOST - len(found)) + 1):
            found.append(draw.choice(typical)._replace(begin_ns=event.begin_ns - number))
        if len(found) >= _MOST:
            break
    return found


def _run(made: Sequence[Event]) -> bool:
    """Whether producing batches is CPU-bound: a busy machine slows each batch by a different factor, but does not
    change its CPU time.
    """
    return sum(event.cpu_ns for event in made) > sum(event.wall_ns for event in made) / 4


def order_ms(loop_events: Iterable[Event]) -> float:
    """Returns the CPU time of the loop's thread from iter() to the first batch, beyond that of other batches, without
    the first epoch.

    Uses the thread's CPU clock, since the elapsed time also includes the start of workers and the wait for the first
    batch.
    """
    begins: list[int] = []
    others: list[int] = []
    began: Event | None = None
    for event in loop_events:
        if event.kind == events.ITER:
            began = event
        elif event.kind == events.WAIT and began is None:
            others.append(event.cpu_ns)
        elif event.kind == events.WAIT and began is not None:
            if began.b > 0:
                begins.append(began.cpu_ns + event.cpu_ns)
            began = None
    if not begins or not others:
        return 0.0
    return max(statistics.fmean(begins) - statistics.median(others), 0.0) / 1e6
