# SPDX-License-Identifier: Apache-2.0
"""The cost of Python's full garbage collections in a loop.

A full collection visits every object in the process, so its duration grows with all imported and referenced objects,
not with the garbage. CPython starts one once the objects created since the last are a quarter of the previous total, so
batches of many objects trigger it repeatedly: https://docs.python.org/3/library/gc.html#gc.set_threshold
"""

from __future__ import annotations

import statistics
from itertools import pairwise

from feedline.profiler.probe import events
from feedline.profiler.summary.figures import Garbage
from feedline.profiler.summary.loops import LoopOfLoader

_SOON_NS = 1_000_000  # time after an epoch's end in which it is reported


def garbage_of(loop: LoopOfLoader) -> Garbage | None:
    """Returns None if collections in this process were not recorded."""
    if not loop.events:
        return None
    first, last = loop.events[0].begin_ns, loop.events[-1].end_ns
    collections = [
        e for e in loop.process.events if e.kind == events.COLLECTIONS and first <= e.begin_ns <= last + _SOON_NS
    ]
    if len(collections) < 2:
        return None
    held = {event.begin_ns for event in collections if event.b}
    pairs = pairwise(loop.events)  # the wait for an epoch's first batch has other causes too
    waits = [event for before, event in pairs if event.kind == events.WAIT and before.kind != events.ITER]
    seen = [event.wall_ns for event in waits if event.begin_ns in held]
    others = [event.wall_ns for event in waits if event.begin_ns not in held]
    count = collections[-1].a - collections[0].a
    if not seen or not others or not count:
        return Garbage(count)
    beyond = statistics.median(seen) - statistics.median(others)
    # assumes that all counted collections took as long as the recorded ones, and also ran in next()
    return Garbage(count, max(beyond, 0.0) / 1e6, min(count * max(beyond, 0.0) / max(loop.time_ns, 1), 1.0))
