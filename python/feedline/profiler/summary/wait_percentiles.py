# SPDX-License-Identifier: Apache-2.0
"""The distribution of a loop's waits."""

from __future__ import annotations

from collections.abc import Iterable

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event

_PERCENTILES = (("p50", 0.50), ("p90", 0.90), ("p99", 0.99))


def wait_percentiles(loop: Iterable[Event]) -> dict[str, float] | None:
    """Returns "p50", "p90", "p99" and "max" of the time in next() in ms, without the first batch of an epoch; None if
    there was no other batch.

    If one recorded cycle represents several cycles, its wait is counted for each of them.
    """
    waits: list[tuple[float, int]] = []
    represents = 0  # 0 for the first batch of an epoch
    for event in loop:
        if event.kind == events.ITER:
            represents = 0
        elif event.kind == events.STEP:
            represents = max(event.b, 1)
        elif event.kind == events.WAIT and represents:
            waits.append((event.wall_ns / 1e6, represents))
    if not waits:
        return None
    waits.sort()
    whole = sum(weight for _, weight in waits)
    return {name: _at(waits, share * whole) for name, share in _PERCENTILES} | {"max": waits[-1][0]}


def _at(waits: list[tuple[float, int]], rank: float) -> float:
    seen = 0
    for wait, weight in waits:
        seen += weight
        if seen >= rank:
            return wait
    return waits[-1][0]
