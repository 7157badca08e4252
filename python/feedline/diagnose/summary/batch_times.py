# SPDX-License-Identifier: Apache-2.0
"""How batches differ, and what an epoch's begin adds to the first of them: what the model of a loop goes through."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from feedline.diagnose.probe import events
from feedline.diagnose.probe.events import Event

_FEWEST, _MOST = 16, 512


def times_of(made: Iterable[Event]) -> tuple[float, ...]:
    """Of batches' making, the last ones in their order, in parts of their mean; empty: too few.

    `made`: tasks of workers; without them the events of the loop, whose waits hold the making.
    """
    kinds = (events.WORK, events.WAIT)
    last = sorted((event for event in made if event.kind in kinds), key=lambda event: event.begin_ns)[-_MOST:]
    if len(last) < _FEWEST:
        return ()
    by_cpu = _run(last)
    times = [event.cpu_ns if by_cpu else event.wall_ns for event in last]
    mean = max(statistics.fmean(times), 1)
    return tuple(time / mean for time in times)


def _run(made: Sequence[Event]) -> bool:
    """Whether batches are made by running: a busy machine stretches each by another factor, and not its CPU time."""
    return sum(event.cpu_ns for event in made) > sum(event.wall_ns for event in made) / 4


def order_ms(loop_events: Iterable[Event]) -> float:
    """CPU of the loop's thread from iter() to the first batch, beyond that of other batches; without the first epoch.

    By the thread's clock, as workers start meanwhile and the first batch is waited for.
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
