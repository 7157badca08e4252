# SPDX-License-Identifier: Apache-2.0
"""Workers' tasks: counts cover all tasks, and recorded tasks explain waits.

If tasks are short, a worker records only some tasks, which represent all of its tasks. Unrecorded tasks are counted;
tasks that took much longer than others are always recorded, and represent only themselves.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event, Total
from feedline.profiler.recordings import ProcessRecord

STRAGGLES = 3.0  # multiple of the usual time of a batch
RECORDED = (events.WORK, events.LATE_WORK)
_PACKED = (events.PICKLE, events.PICKLE_BESIDE)


def done_of(totals: Mapping[int, Total]) -> Total:
    """Returns all tasks of a worker, in which recorded tasks represent unrecorded ones. The value `a` of these events
    has no meaning.
    """
    seen, late, unseen = (totals.get(k, Total()) for k in (events.WORK, events.LATE_WORK, events.UNSEEN_WORK))
    return seen + late + unseen._replace(times=unseen.a, longest_ns=0)


def with_unseen(recorded: Sequence[Event]) -> Iterator[tuple[Event, int]]:
    """Yields recorded tasks, latest first, with the number of unrecorded tasks that each represents."""
    passed = 0
    for event in reversed(recorded):
        if event.kind == events.UNSEEN_WORK:
            passed += event.a
        elif event.kind == events.WORK:
            yield event, passed
            passed = 0
        elif event.kind == events.LATE_WORK:
            yield event, 0


def _median(times: Iterable[tuple[int, int]]) -> float:
    """Returns the weighted median of times."""
    known = sorted(times)
    half, so_far = sum(many for _, many in known) / 2, 0
    for at, (time, many) in enumerate(known):
        so_far += many
        if so_far == half:
            return (time + known[at + 1][0]) / 2
        if so_far > half:
            return time
    return 0.0


class _Sending:
    """Batches packed by one worker, in sequence, in a thread that does no other work.

    The thread shares the GIL with the production of later batches, and makes no progress while a single long sample
    runs.
    """

    def __init__(self, process: ProcessRecord) -> None:
        self.stragglers: list[tuple[int, int]] = []  # start and end of batches that one sample made late
        packs = (event for event in process.events if event.kind in _PACKED)
        self._packs = sorted(packs, key=lambda event: event.begin_ns)
        self._begins = [event.begin_ns for event in self._packs]
        self._ends = [event.end_ns for event in self._packs]

    def cpu_between(self, begin_ns: int, end_ns: int) -> float:
        """Returns the CPU time for packing any batches in this span, since a finished batch waits until earlier batches
        are packed.
        """
        cpu = 0.0
        first, last = bisect.bisect_right(self._ends, begin_ns), bisect.bisect_left(self._begins, end_ns)
        for pack in self._packs[first:last]:
            inside = min(pack.end_ns, end_ns) - max(pack.begin_ns, begin_ns)
            cpu += pack.cpu_ns * inside / max(pack.wall_ns, 1)
        return cpu

    def held_up_between(self, begin_ns: int, end_ns: int) -> int:
        """Returns the nanoseconds of this span in which the worker produced a straggler."""
        return _overlap(self.stragglers, begin_ns, end_ns)


def _overlap(spans: Iterable[tuple[int, int]], begin_ns: int, end_ns: int) -> int:
    return sum(max(min(end, end_ns) - max(begin, begin_ns), 0) for begin, end in spans)


def waits(work: Event | Task) -> bool:
    """Whether samples spend most of their time waiting rather than running. In a stream, a sample is late if the next
    part had to be opened or fetched; no sample itself is slow, but the first sample of each part is late.
    """
    return work.cpu_ns < work.wall_ns / 2


class Task(NamedTuple):
    """A batch produced by a worker."""

    end_ns: int
    wall_ns: int
    cpu_ns: int
    longest_sample_ns: int  # 0: its samples were not timed separately
    late: bool  # much longer than others, so that it does not represent unrecorded ones
    sending: _Sending


class Work:
    """The tasks of all workers by number; numbers restart in every epoch."""

    def __init__(self, makers: Sequence[ProcessRecord], stream: bool) -> None:
        self._stream = stream
        self.paced = any(events.UNSEEN_WORK in process.totals for process in makers)
        self._by_task: dict[int, list[Task]] = defaultdict(list)
        for process in makers:
            sending = _Sending(process)
            for event in process.events:
                if event.kind in RECORDED:
                    late = event.kind == events.LATE_WORK
                    task = Task(event.end_ns, event.wall_ns, event.cpu_ns, event.b, late, sending)
                    self._by_task[event.a].append(task)
        for tasks in self._by_task.values():
            tasks.sort(key=lambda task: task.end_ns)
        everything = [task for tasks in self._by_task.values() for task in tasks]
        weighted = ((event, passed) for process in makers for event, passed in with_unseen(process.events))
        self.usual_ns = _median((event.wall_ns, 1 + passed) for event, passed in weighted if event.kind == events.WORK)
        long = [task for task in everything if task.wall_ns > STRAGGLES * self.usual_ns]
        seen = [task.longest_sample_ns > task.wall_ns / 2 for task in long if task.longest_sample_ns]
        self._unseen_straggle = 2 * sum(seen) > len(seen)
        self._stragglers = []
        for task in filter(self.straggles, long):
            span = (task.end_ns - task.wall_ns, task.end_ns)
            task.sending.stragglers.append(span)
            self._stragglers.append(span)

    def straggles(self, task: Task) -> bool:
        """Whether one sample makes the task take much longer than other tasks. If the task's samples were not timed,
        the timed samples of other tasks are used.
        """
        if task.wall_ns <= STRAGGLES * self.usual_ns or (self._stream and waits(task)):
            return False
        return task.longest_sample_ns > task.wall_ns / 2 if task.longest_sample_ns else self._unseen_straggle

    def that_made(self, wait: Event, since_ns: int) -> Task | None:
        """Returns the task that produced the batch, or None if it was not recorded. `since_ns`: the start of the epoch;
        if some tasks are unrecorded, the latest task with this number may belong to an earlier epoch.
        """
        tasks = self._by_task.get(wait.b, [])
        at = bisect.bisect_right(tasks, wait.end_ns, key=lambda task: task.end_ns)
        task = tasks[at - 1] if at else None
        return None if task is not None and self.paced and task.end_ns < since_ns else task

    def held_up(self, wait: Event) -> float:
        """Returns the nanoseconds of a wait for an unrecorded task in which a worker produced a straggler."""
        if not self.paced or wait.wall_ns <= STRAGGLES * self.usual_ns:
            return 0.0  # at most the time of a batch
        return min(_overlap(self._stragglers, wait.begin_ns, wait.end_ns), wait.wall_ns - self.usual_ns)
