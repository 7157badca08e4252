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

from feedline.diagnose.probe import events
from feedline.diagnose.probe.events import Event
from feedline.diagnose.session import ProcessRecord
from feedline.diagnose.summary.figures import Waits
from feedline.diagnose.summary.loops import LoopOfLoader

_STRAGGLES = 3.0  # times the usual time of a batch
_LARGEST_EPOCHS_START = 0.25  # a start that is paid once counts when it is more than this share


class Account:
    """Goes through a loop's events and books every nanosecond of it."""

    def __init__(
        self, loop: LoopOfLoader, makers: Sequence[ProcessRecord], persistent: bool, has_workers: bool
    ) -> None:
        self.steps = self.epochs = self.steady_waits = 0
        self.step_ns = self.step_cpu_ns = self.steady_wait_ns = 0
        self.production = self.straggler = self.handover = self.startup = self.border = self.first_start = 0.0
        self._has_workers, self._persistent = has_workers, persistent
        self._work = _Work(makers)
        self._ready = sorted(e.end_ns for p in makers for e in p.events if e.kind == events.READY)
        self._slow = sorted((e.begin_ns, e) for e in loop.process.events if e.kind == events.SAMPLE)
        self._usual_wait = _usual_wait(loop.events)
        self._go_through(loop.events)

    def _go_through(self, loop_events: Sequence[Event]) -> None:
        weight, first, began = 1, False, None
        for event in loop_events:
            if event.kind == events.ITER:
                self.epochs, first, began, weight = self.epochs + 1, True, event, 1
            elif event.kind == events.STEP:
                weight = max(event.b, 1)
                self.steps += weight
                self.step_ns += weight * event.wall_ns
                self.step_cpu_ns += weight * event.cpu_ns
            elif event.kind == events.LAST:
                self._book_stop(event)
            elif first and began is not None:
                first = False
                self._book_first(began, event)
            else:
                self._book(event, weight)

    def _book(self, wait: Event, weight: int) -> None:
        self.steady_waits += weight
        self.steady_wait_ns += weight * wait.wall_ns
        if not self._has_workers:
            straggling = self._slow_in_loop(wait)
            self.straggler += weight * straggling
            self.production += weight * (wait.wall_ns - straggling)
            return
        work = self._work.that_made(wait)
        if work is None:
            self.production += weight * wait.wall_ns
            return
        made = min(max(work.end_ns - wait.begin_ns, 0), wait.wall_ns)
        excess = work.wall_ns - self._work.usual_ns
        one_sample = work.b > work.wall_ns / 2 and work.wall_ns > _STRAGGLES * self._work.usual_ns
        straggling = min(made, excess) if one_sample else 0
        self.straggler += weight * straggling
        self.production += weight * (made - straggling)
        self.handover += weight * (wait.wall_ns - made)

    def _slow_in_loop(self, wait: Event) -> float:
        """Without workers: the time of slow samples inside this wait, where they made it unusual."""
        if wait.wall_ns < _STRAGGLES * self._usual_wait:
            return 0.0
        at = bisect.bisect_left(self._slow, (wait.begin_ns,))
        slow = 0
        while at < len(self._slow) and self._slow[at][0] < wait.end_ns:
            slow += self._slow[at][1].wall_ns
            at += 1
        return min(slow, wait.wall_ns - self._usual_wait) if slow > wait.wall_ns / 2 else 0.0

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
            self.first_start += starting
            return
        self.startup += min(starting, whole - usual)
        self.border += max(whole - usual - starting, 0.0)

    def _book_stop(self, last: Event) -> None:
        if self._has_workers and not self._persistent:
            self.startup += last.wall_ns
        else:
            self.border += last.wall_ns

    @property
    def loop_ns(self) -> float:
        waited = self.production + self.straggler + self.handover + self.startup + self.border
        return waited + self.step_ns

    def waits(self) -> Waits:
        startup, loop_ns = self.startup, max(self.loop_ns, 1.0)
        if self.first_start > _LARGEST_EPOCHS_START * (loop_ns + self.first_start) or self.epochs > 1:
            startup += self.first_start
            loop_ns += self.first_start
        return Waits(
            self.production / loop_ns,
            self.straggler / loop_ns,
            self.handover / loop_ns,
            startup / loop_ns,
            self.border / loop_ns,
            self.step_ns / loop_ns,
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


class _Work:
    """The tasks of all workers, by their numbers, which begin anew in every epoch."""

    def __init__(self, makers: Iterable[ProcessRecord]) -> None:
        self._by_task: dict[int, list[Event]] = defaultdict(list)
        for process in makers:
            for event in process.events:
                if event.kind == events.WORK:
                    self._by_task[event.a].append(event)
        for tasks in self._by_task.values():
            tasks.sort(key=lambda event: event.end_ns)
        everything = [e.wall_ns for tasks in self._by_task.values() for e in tasks]
        self.usual_ns = statistics.median(everything) if everything else 0.0

    def that_made(self, wait: Event) -> Event | None:
        tasks = self._by_task.get(wait.b, [])
        at = bisect.bisect_right(tasks, wait.end_ns, key=lambda event: event.end_ns)
        return tasks[at - 1] if at else None
