# SPDX-License-Identifier: Apache-2.0
"""Extracts the steps of a profiled loop for a run record."""

from __future__ import annotations

from feedline.profiler.probe import events
from feedline.profiler.recordings import Recording
from feedline.profiler.summary.timeline import loops_of
from feedline.record.diagnosis import Step

__all__ = ["steps_of"]


def steps_of(recording: Recording) -> list[Step]:
    """Returns the steps of the longest loop, which is the one that is diagnosed."""
    loops = loops_of(recording.processes)
    if not loops:
        return []
    begin = loops[0].events[0].begin_ns
    steps: list[Step] = []
    wait_ms = 0.0
    for event in loops[0].events:
        if event.kind == events.WAIT:
            wait_ms += event.wall_ns / 1e6
        elif event.kind == events.STEP:
            steps.append(((event.begin_ns - begin) / 1e9, wait_ms, event.wall_ns / 1e6))
            wait_ms = 0.0
    return steps
