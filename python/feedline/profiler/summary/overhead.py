# SPDX-License-Identifier: Apache-2.0
"""Overhead of profiling a run, from the hooks' own accounts and the CPU time of the profiling process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event, Total
from feedline.profiler.recordings import ProcessRecord, Recording

_AN_OPEN_NS = 150  # a Python audit event, recorded or not


@dataclass(frozen=True)
class Overhead:
    """Overhead as shares of the time of the loop, or of the process's lifetime if it is longer than the loop, and
    one-time costs.

    The share of the hooks is that of the process with the most expensive hooks, because a loop waits for the slowest
    process. All CPU time of the profiling process counts as overhead, as if the script could have used that time.
    """

    hooks: float
    profiler: float
    load_ms: float  # maximum over processes of the CPU of loading the probe and starting its first loop
    copy_ms: float  # pause of the loop while its process is copied for the experiments

    @property
    def share(self) -> float:
        return self.hooks + self.profiler

    def as_dict(self) -> dict[str, float]:
        once = {"load_ms": self.load_ms, "copy_ms": self.copy_ms}
        return {"hooks_share": self.hooks, "watching_share": self.profiler, **once}


def overhead_of(recording: Recording, loop_ns: int) -> Overhead | None:
    """Returns None if there was no loop. `loop_ns`: time from the loop's first event to its last."""
    if loop_ns <= 0:
        return None
    watched = max(recording.watcher_cpu_ns, recording.host.get("sampler_cpu_ns", 0))
    hooks = [_hooks_ns(process) / max(loop_ns, _lived_ns(process)) for process in recording.processes]
    started = [sum(e.a for e in p.events if e.kind == events.STARTED) for p in recording.processes]
    copied = [e for process in recording.processes for e in process.events if e.kind == events.COPY]
    return Overhead(
        max(hooks, default=0.0),
        watched / max(recording.end_ns - recording.begin_ns, 1),
        max(started, default=0) / 1e6,
        max((event.wall_ns for event in copied), default=0) / 1e6,
    )


def _hooks_ns(process: ProcessRecord) -> float:
    """Returns the measured cost of timed hooks plus the estimated cost of counted calls, which do similar work and are
    assumed to have the same cost per call.
    """
    totals = process.totals
    if events.COST not in totals:
        return 0.0
    spent = totals.get(events.SPENT, Total())
    timed = sum(totals.get(kind, Total()).times for kind in events.TIMED)
    counted = sum(t.times for kind, t in totals.items() if kind not in _NO_WORK and kind not in events.TIMED)
    per_event = float(totals[events.COST].a)
    if spent.times:
        per_event = max(per_event, spent.cpu_ns / spent.times)
    per_call = next((e.b for e in process.events if e.kind == events.COST), 500)
    cost = spent.a if spent.times else timed * per_event
    cost += counted * per_event
    cost += (totals.get(events.CALLS, Total()).a + _unseen(process.events, totals)) * per_call
    cost += totals.get(events.DEVICE_COST, Total()).a
    return cost + totals.get(events.HEARD, Total()).a * _AN_OPEN_NS


_NO_WORK = (0, events.COST, events.SPENT, events.STARTED, events.HEARD, events.COPY, events.DEVICE_COST)


def _unseen(recorded: list[Event], totals: Mapping[int, Total]) -> float:
    """Returns the number of batches and steps without an event."""
    strides = [event.b for event in recorded if event.kind == events.STEP]
    seen = totals.get(events.STEP, Total()).times
    steps = seen * (sum(strides) / len(strides) - 1) if strides else 0.0
    steps += sum(event.b for event in recorded if event.kind == events.LAST)
    fetches = totals.get(events.WORK, Total()).times - totals.get(events.FETCH, Total()).times
    return max(steps, 0.0) + max(fetches, 0)


def _lived_ns(process: ProcessRecord) -> int:
    """Uses the time since the ring's creation: the ring contains only the last part of a long loop, but the counts
    cover the whole loop.
    """
    return process.events[-1].end_ns - process.created_ns if process.events else 0
