# SPDX-License-Identifier: Apache-2.0
"""What full collections of Python's garbage take of a loop.

A full one looks at every object of the process, so its time grows with all that is imported and held, and not with what
is dropped. CPython begins one once the objects made since the last are a quarter of those there were, so batches of
many objects set them off again and again: https://docs.python.org/3/library/gc.html#gc.set_threshold
"""

from __future__ import annotations

import statistics
from itertools import pairwise

from feedline.watching.probe import events
from feedline.watching.summary.figures import Garbage
from feedline.watching.summary.loops import LoopOfLoader

_SOON_NS = 1_000_000  # after an epoch's end: when it is told


def garbage_of(loop: LoopOfLoader) -> Garbage | None:
    """None: what this process collects was not looked at."""
    if not loop.events:
        return None
    first, last = loop.events[0].begin_ns, loop.events[-1].end_ns
    told = [e for e in loop.process.events if e.kind == events.COLLECTIONS and first <= e.begin_ns <= last + _SOON_NS]
    if len(told) < 2:
        return None
    held = {event.begin_ns for event in told if event.b}
    pairs = pairwise(loop.events)  # the wait for an epoch's first batch is for more
    waits = [event for before, event in pairs if event.kind == events.WAIT and before.kind != events.ITER]
    seen = [event.wall_ns for event in waits if event.begin_ns in held]
    others = [event.wall_ns for event in waits if event.begin_ns not in held]
    count = told[-1].a - told[0].a
    if not seen or not others or not count:
        return Garbage(count)
    beyond = statistics.median(seen) - statistics.median(others)
    # as many as were counted took as long as those that were seen, which all fell into next(): so may the others have
    return Garbage(count, max(beyond, 0.0) / 1e6, min(count * max(beyond, 0.0) / max(loop.time_ns, 1), 1.0))
