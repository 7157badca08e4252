# SPDX-License-Identifier: Apache-2.0
"""Variation of batch times, and the extra cost of an epoch's first batch: inputs of the loop model."""

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
    """Returns times of making the last batches, in order, relative to their mean; empty if too few.

    `made`: tasks of workers; without them the events of the loop, whose waits include the making.
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
    """As times_of. Unrecorded tasks are drawn at random from the recorded ones of their worker."""
    lists = [process.events for process in workers]
    if sum(event.kind in RECORDED for recorded in lists for event in recorded) < _FEWEST:
        return ()
    return times_of(task for recorded in lists for task in _last_tasks(recorded))


def _last_tasks(recorded: Sequence[Event]) -> list[Event]:
    """Times of one worker, most recent first."""
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
    """Whether making batches is CPU-bound: a busy machine slows each by a different factor, but does not change its
    CPU time.
    """
    return sum(event.cpu_ns for event in made) > sum(event.wall_ns for event in made) / 4


def order_ms(loop_events: Iterable[Event]) -> float:
    """CPU of the loop's thread from iter() to the first batch, beyond that of other batches; without the first epoch.

    Uses the thread's CPU clock, as workers start and the first batch is waited for in that time.
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
