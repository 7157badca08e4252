# SPDX-License-Identifier: Apache-2.0
"""Goes through a loop's events and books each wait on what was waited for.

A wait inside ``next()`` is explained by the batch that ended it: until the worker had made that batch the loop waited
for production, after that for the hand-over.
"""

from __future__ import annotations

import bisect
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from feedline.diagnose.probe import events
from feedline.diagnose.probe.events import Event, Total
from feedline.diagnose.session import ProcessRecord
from feedline.diagnose.summary.figures import Waits
from feedline.diagnose.summary.loops import LoopOfLoader, Told

_STRAGGLES = 3.0  # times the usual time of a batch
_LARGEST_PAID_ONCE = 0.25  # workers' start and stop that are paid once count when they are more than this share


class Stretch(NamedTuple):
    """How many times as long as its CPU time work took, for want of CPUs."""

    loop: float = 1.0
    workers: float = 1.0


class Account:
    """Goes through a loop's events and books every nanosecond of it."""

    def __init__(
        self,
        loop: LoopOfLoader,
        makers: Sequence[ProcessRecord],
        persistent: bool,
        has_workers: bool,
        stream: bool,
        stretch: Stretch,
    ) -> None:
        self.steps = self.epochs = self.steady_waits = 0
        self.step_ns = self.step_cpu_ns = self.steady_wait_ns = 0.0
        self.production = self.straggler = self.handover = self.startup = self.border = 0.0
        self.packed = self.packed_cpu = 0.0  # of the hand-over
        self.paid_once = 0.0  # the first start of workers and their last stop
        self._stretch = stretch
        self._has_workers, self._persistent = has_workers, persistent
        self._work = _Work(makers, stream)
        # a thread of the loop's process that page-locks batches unpacks them too, and no event tells of that
        unpacked = loop.process.totals.get(events.UNPICKLE, Total()).times
        self._sees_packing = bool(unpacked) and any(events.PICKLE in process.totals for process in makers)
        self._ready = sorted(e.end_ns for p in makers for e in p.events if e.kind == events.READY)
        self._usual_wait = _usual_wait(loop.events)
        self._samples = _SamplesInLoop(loop, self._usual_wait, stream)
        self._go_through(loop)

    def _go_through(self, loop: LoopOfLoader) -> None:
        first, began = False, None
        for one in loop.told:
            event = one.event
            if event.kind == events.ITER:
                self.epochs, first, began = self.epochs + 1, True, event
            elif event.kind == events.STEP:
                self.steps += one.times
                self.step_ns += one.wall_ns
                self.step_cpu_ns += one.weight * event.cpu_ns
            elif event.kind == events.LAST:
                self._book_stop(event, event is loop.events[-1])
            elif first and began is not None:
                first = False
                self._book_first(began, event)
            else:
                self._book(one)

    def _book(self, one: Told) -> None:
        wait, weight = one.event, one.weight
        self.steady_waits += one.times
        self.steady_wait_ns += one.wall_ns
        if not self._has_workers:
            straggling = self._samples.straggling_ns(wait)
            self.straggler += weight * straggling
            self.production += weight * (wait.wall_ns - straggling)
            return
        work = self._work.that_made(wait)
        if work is None:
            self.production += weight * wait.wall_ns
            return
        made = min(max(work.end_ns - wait.begin_ns, 0), wait.wall_ns)
        straggling = min(made, work.wall_ns - self._work.usual_ns) if self._work.straggles(work) else 0
        self.straggler += weight * straggling
        self.production += weight * (made - straggling)
        self._book_handover(wait, work, wait.wall_ns - made, weight)

    def _book_handover(self, wait: Event, work: _Task, after: float, weight: float) -> None:
        """`after`: the part of the wait for a batch that was made already."""
        begin = max(wait.begin_ns, work.end_ns)
        held_up = min(work.sending.held_up_between(begin, wait.end_ns), after)
        self.straggler += weight * held_up
        after -= held_up
        self.handover += weight * after
        packing = work.sending.cpu_between(begin, wait.end_ns)
        self.packed_cpu += weight * min(wait.cpu_ns + packing, after)
        self.packed += weight * min(self._stretch.loop * wait.cpu_ns + self._stretch.workers * packing, after)

    def _book_first(self, began: Event, wait: Event) -> None:
        """iter() and the wait for an epoch's first batch, above what a batch has to be waited for anyway."""
        whole = began.wall_ns + wait.wall_ns
        usual = min(self._usual_wait, wait.wall_ns)
        ready = bisect.bisect_left(self._ready, began.begin_ns)
        starting = 0.0
        if self._has_workers and ready < len(self._ready) and self._ready[ready] < wait.end_ns:
            starting = self._ready[ready] - began.begin_ns
        self.production += usual
        if began.b == 0:
            self.paid_once += starting
            return
        self.startup += min(starting, whole - usual)
        self.border += max(whole - usual - starting, 0.0)

    def _book_stop(self, last: Event, is_end: bool) -> None:
        if not self._has_workers or self._persistent:
            self.border += last.wall_ns
        elif is_end:
            self.paid_once += last.wall_ns
        else:
            self.startup += last.wall_ns

    @property
    def loop_ns(self) -> float:
        waited = self.production + self.straggler + self.handover + self.startup + self.border
        return waited + self.step_ns

    def waits(self) -> Waits:
        startup, loop_ns = self.startup, max(self.loop_ns, 1.0)
        if self.paid_once > _LARGEST_PAID_ONCE * (loop_ns + self.paid_once) or self.epochs > 1:
            startup += self.paid_once
            loop_ns += self.paid_once
        return Waits(
            self.production / loop_ns,
            self.straggler / loop_ns,
            self.handover / loop_ns,
            startup / loop_ns,
            self.border / loop_ns,
            self.step_ns / loop_ns,
            self.packed / loop_ns if self._sees_packing else None,
            self.packed_cpu / loop_ns if self._sees_packing else None,
        )


def _usual_wait(loop_events: Sequence[Event]) -> float:
    """The median, without the first of each epoch."""
    waits, first = [], False
    for event in loop_events:
        if event.kind == events.WAIT:
            if not first:
                waits.append(event.wall_ns)
            first = False
        elif event.kind == events.ITER:
            first = True
    return statistics.median(waits) if waits else 0.0


class _SamplesInLoop:
    """Samples of a loop without workers, and the waits that slow ones of them made unusual."""

    def __init__(self, loop: LoopOfLoader, usual_wait_ns: float, stream: bool) -> None:
        self._usual_ns, self._stream = usual_wait_ns, stream
        recorded = sorted(loop.process.events, key=lambda event: event.begin_ns)
        self._slow = [e for e in recorded if e.kind == events.SAMPLE and not (stream and _waits(e))]
        self._fetches = [event for event in recorded if event.kind == events.FETCH]  # late ones
        late = [e for e in loop.events if e.kind == events.WAIT and self._is_late(e)] if self._slow else []
        looked_at = [wait for wait in late if self._looked_at(wait)]
        over = sum(wait.wall_ns - usual_wait_ns for wait in looked_at)
        self._unseen_share = sum(map(self._slow_in, looked_at)) / over if over else 0.0

    def straggling_ns(self, wait: Event) -> float:
        """Of this wait. Where its samples were not looked at one by one, as of those that were."""
        if not self._is_late(wait):
            return 0.0
        if self._looked_at(wait) or (self._stream and _waits(wait)):
            return self._slow_in(wait)
        return (wait.wall_ns - self._usual_ns) * self._unseen_share

    def _is_late(self, wait: Event) -> bool:
        return wait.wall_ns >= _STRAGGLES * self._usual_ns

    def _slow_in(self, wait: Event) -> float:
        slow = sum(sample.wall_ns for sample in _begun_in(wait, self._slow))
        return min(slow, wait.wall_ns - self._usual_ns) if slow > wait.wall_ns / 2 else 0.0

    def _looked_at(self, wait: Event) -> bool:
        return any(fetch.b for fetch in _begun_in(wait, self._fetches)) or self._slow_in(wait) > 0.0


def _begun_in(wait: Event, in_order: Sequence[Event]) -> Sequence[Event]:
    first = bisect.bisect_left(in_order, wait.begin_ns, key=lambda event: event.begin_ns)
    return in_order[first : bisect.bisect_left(in_order, wait.end_ns, key=lambda event: event.begin_ns)]


class _Sending:
    """The batches that one worker has packed, one after the other, in a thread that has nothing else to do.

    It shares the interpreter with the making of later ones: while one sample runs on and on there, it does not.
    """

    def __init__(self, process: ProcessRecord) -> None:
        self.stragglers: list[tuple[int, int]] = []  # begin and end of batches that one sample made late
        self._packs = sorted((e for e in process.events if e.kind == events.PICKLE), key=lambda event: event.begin_ns)
        self._begins = [event.begin_ns for event in self._packs]
        self._ends = [event.end_ns for event in self._packs]

    def cpu_between(self, begin_ns: int, end_ns: int) -> float:
        """Of whichever batches: one that is made waits for those before it to be packed."""
        cpu = 0.0
        first, last = bisect.bisect_right(self._ends, begin_ns), bisect.bisect_left(self._begins, end_ns)
        for pack in self._packs[first:last]:
            inside = min(pack.end_ns, end_ns) - max(pack.begin_ns, begin_ns)
            cpu += pack.cpu_ns * inside / max(pack.wall_ns, 1)
        return cpu

    def held_up_between(self, begin_ns: int, end_ns: int) -> int:
        """Nanoseconds of this span in which the worker made a batch that straggled."""
        return sum(max(min(end, end_ns) - max(begin, begin_ns), 0) for begin, end in self.stragglers)


def _waits(work: Event | _Task) -> bool:
    """Rather than runs. Of a stream, where a sample is late because the next part was opened before it, or fetched: no
    sample is slower than others there, whatever comes first of a part is late.
    """
    return work.cpu_ns < work.wall_ns / 2


class _Task(NamedTuple):
    """A batch that a worker made."""

    end_ns: int
    wall_ns: int
    cpu_ns: int
    longest_sample_ns: int  # 0: its samples were not looked at one by one
    sending: _Sending


class _Work:
    """The tasks of all workers, by their numbers, which begin anew in every epoch."""

    def __init__(self, makers: Iterable[ProcessRecord], stream: bool) -> None:
        self._stream = stream
        self._by_task: dict[int, list[_Task]] = defaultdict(list)
        for process in makers:
            sending = _Sending(process)
            for event in process.events:
                if event.kind == events.WORK:
                    task = _Task(event.end_ns, event.wall_ns, event.cpu_ns, event.b, sending)
                    self._by_task[event.a].append(task)
        for tasks in self._by_task.values():
            tasks.sort(key=lambda task: task.end_ns)
        everything = [task.wall_ns for tasks in self._by_task.values() for task in tasks]
        self.usual_ns = statistics.median(everything) if everything else 0.0
        long = [task for tasks in self._by_task.values() for task in tasks if task.wall_ns > _STRAGGLES * self.usual_ns]
        seen = [task.longest_sample_ns > task.wall_ns / 2 for task in long if task.longest_sample_ns]
        self._unseen_straggle = 2 * sum(seen) > len(seen)
        for task in filter(self.straggles, long):
            task.sending.stragglers.append((task.end_ns - task.wall_ns, task.end_ns))

    def straggles(self, task: _Task) -> bool:
        """Takes much longer than others for one sample. Where its samples were not seen, as those that were do."""
        if task.wall_ns <= _STRAGGLES * self.usual_ns or (self._stream and _waits(task)):
            return False
        return task.longest_sample_ns > task.wall_ns / 2 if task.longest_sample_ns else self._unseen_straggle

    def that_made(self, wait: Event) -> _Task | None:
        tasks = self._by_task.get(wait.b, [])
        at = bisect.bisect_right(tasks, wait.end_ns, key=lambda task: task.end_ns)
        return tasks[at - 1] if at else None
