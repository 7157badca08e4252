# SPDX-License-Identifier: Apache-2.0
"""Attributes each wait in a loop's events to its cause.

A wait inside ``next()`` is explained by the batch that ended it: until the worker had produced that batch, the loop
waited for production; after that, it waited for the hand-over.
"""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event, Total
from feedline.profiler.recordings import ProcessRecord
from feedline.profiler.summary.figures import Waits
from feedline.profiler.summary.loops import LoopOfLoader, WeightedEvent
from feedline.profiler.summary.tasks import STRAGGLES, Task, Work, waits

_LARGEST_PAID_ONCE = 0.25  # minimum share at which one-time costs of workers' start and stop count


class Stretch(NamedTuple):
    """Ratios of work's elapsed time to its CPU time if CPUs are lacking."""

    loop: float = 1.0
    workers: float = 1.0


class _Parts(NamedTuple):
    """Waits for recorded batches, in ns, excluding time due to stragglers."""

    production: float = 0.0
    handover: float = 0.0
    packed: float = 0.0  # part of the hand-over
    packed_cpu: float = 0.0

    def plus(self, other: _Parts, times: float) -> _Parts:
        return _Parts(*(own + times * its for own, its in zip(self, other, strict=True)))


class Account:
    """Attributes every nanosecond of a loop's events to a cause."""

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
        self.straggler = self.startup = self.border = 0.0
        self._parts = self._typical = _Parts()  # of all waits; of those for batches like the unrecorded ones
        self._unseen_ns = self._unseen = 0.0  # waits for unrecorded batches; since the last typical
        self.paid_once = 0.0  # the first start of workers and their last stop
        self._stretch = stretch
        self._has_workers, self._persistent = has_workers, persistent
        self._work = Work(makers, stream)
        # a thread of the loop's process that page-locks batches also unpacks them, without an event
        unpacked = loop.process.totals.get(events.UNPICKLE, Total()).times
        self._sees_packing = bool(unpacked) and any(events.PICKLE in process.totals for process in makers)
        self._ready = sorted(e.end_ns for p in makers for e in p.events if e.kind == events.READY)
        self._usual_wait = _usual_wait(loop.events)
        self._samples = _SamplesInLoop(loop, self._usual_wait, stream)
        self._go_through(loop)

    def _go_through(self, loop: LoopOfLoader) -> None:
        first, began = False, None
        for one in loop.weighted_events:
            event = one.event
            if event.kind == events.ITER:
                self.epochs, first, began = self.epochs + 1, True, event
            elif event.kind == events.STEP:
                self.steps += one.times
                self.step_ns += one.wall_ns
                self.step_cpu_ns += one.cpu_ns
            elif event.kind == events.LAST:
                self._book_stop(event, event is loop.events[-1])
            elif first and began is not None:
                first = False
                self._book_first(began, event)
            else:
                self._book(one, began.begin_ns if began is not None else 0)
        self._book_unseen()

    def _book(self, one: WeightedEvent, since_ns: int) -> None:
        wait, weight = one.event, one.weight
        self.steady_waits += one.times
        self.steady_wait_ns += one.wall_ns
        if not self._has_workers:
            straggling = self._samples.straggling_ns(wait)
            self.straggler += weight * straggling
            self._add(_Parts(wait.wall_ns - straggling), weight)
            return
        work = self._work.that_made(wait, since_ns)
        if work is None:
            held_up = self._work.held_up(wait)
            self.straggler += weight * held_up
            self._unseen_ns += weight * (wait.wall_ns - held_up)
            self._unseen += weight
            return
        straggling, parts = self._parts_of(one, work)
        self.straggler += weight * straggling
        self._add(parts, weight)
        if not work.late:
            self._typical = self._typical.plus(parts, weight + self._unseen)
            self._unseen = 0.0

    def _add(self, parts: _Parts, times: float) -> None:
        self._parts = self._parts.plus(parts, times)

    def _parts_of(self, one: WeightedEvent, work: Task) -> tuple[float, _Parts]:
        """Returns the parts of a wait that are due to a straggler and to other causes."""
        wait, running = one.event, one.cpu_each_ns
        made = min(max(work.end_ns - wait.begin_ns, 0), wait.wall_ns)
        straggling = min(made, work.wall_ns - self._work.usual_ns) if self._work.straggles(work) else 0
        begin, after = max(wait.begin_ns, work.end_ns), wait.wall_ns - made
        held_up = min(work.sending.held_up_between(begin, wait.end_ns), after)
        after -= held_up
        packing = work.sending.cpu_between(begin, wait.end_ns)
        cpu = min(running + packing, after)
        stretched = min(self._stretch.loop * running + self._stretch.workers * packing, after)
        return straggling + held_up, _Parts(made - straggling, after, stretched, cpu)

    def _book_unseen(self) -> None:
        """Attributes waits for unrecorded batches in the same proportions as waits for similar recorded batches."""
        known = self._typical.production + self._typical.handover
        if self._work.paced and known > 0:
            self._add(self._typical, self._unseen_ns / known)
        else:
            self._add(_Parts(self._unseen_ns), 1)

    def _book_first(self, began: Event, wait: Event) -> None:
        """Attributes to causes the time of iter() and of the wait for an epoch's first batch, in excess of the usual
        wait for a batch.
        """
        whole = began.wall_ns + wait.wall_ns
        usual = min(self._usual_wait, wait.wall_ns)
        ready = bisect.bisect_left(self._ready, began.begin_ns)
        starting = 0.0
        if self._has_workers and ready < len(self._ready) and self._ready[ready] < wait.end_ns:
            starting = self._ready[ready] - began.begin_ns
        self._add(_Parts(usual), 1)
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
    def production(self) -> float:
        return self._parts.production

    @property
    def loop_ns(self) -> float:
        waited = self._parts.production + self.straggler + self._parts.handover + self.startup + self.border
        return waited + self.step_ns

    def waits(self) -> Waits:
        startup, loop_ns = self.startup, max(self.loop_ns, 1.0)
        if self.paid_once > _LARGEST_PAID_ONCE * (loop_ns + self.paid_once) or self.epochs > 1:
            startup += self.paid_once
            loop_ns += self.paid_once
        return Waits(
            self._parts.production / loop_ns,
            self.straggler / loop_ns,
            self._parts.handover / loop_ns,
            startup / loop_ns,
            self.border / loop_ns,
            self.step_ns / loop_ns,
            self._parts.packed / loop_ns if self._sees_packing else None,
            self._parts.packed_cpu / loop_ns if self._sees_packing else None,
        )


def _usual_wait(loop_events: Sequence[Event]) -> float:
    """Returns the median wait, excluding the first wait of each epoch."""
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
    """Samples in a loop without workers, and the waits that slow samples made unusually long."""

    def __init__(self, loop: LoopOfLoader, usual_wait_ns: float, stream: bool) -> None:
        self._usual_ns, self._stream = usual_wait_ns, stream
        recorded = sorted(loop.process.events, key=lambda event: event.begin_ns)
        self._slow = [e for e in recorded if e.kind == events.SAMPLE and not (stream and waits(e))]
        self._fetches = [event for event in recorded if event.kind == events.FETCH]  # late ones
        late = [e for e in loop.events if e.kind == events.WAIT and self._is_late(e)] if self._slow else []
        # if no such wait was recorded, its fetch was
        looked_at = [w for w in late if self._looked_at(w)] or [fetch for fetch in self._fetches if fetch.b]
        over = sum(max(wait.wall_ns - usual_wait_ns, 0) for wait in looked_at)
        self._unseen_share = sum(map(self._slow_in, looked_at)) / over if over else 0.0

    def straggling_ns(self, wait: Event) -> float:
        """Returns the time that slow samples added to this wait. If the samples of this wait were not timed separately,
        the timed samples of other waits are used.
        """
        if not self._is_late(wait):
            return 0.0
        if self._looked_at(wait) or (self._stream and waits(wait)):
            return self._slow_in(wait)
        return (wait.wall_ns - self._usual_ns) * self._unseen_share

    def _is_late(self, wait: Event) -> bool:
        return wait.wall_ns >= STRAGGLES * self._usual_ns

    def _slow_in(self, wait: Event) -> float:
        slow = sum(sample.wall_ns for sample in begun_in(wait, self._slow))
        return min(slow, wait.wall_ns - self._usual_ns) if slow > wait.wall_ns / 2 else 0.0

    def _looked_at(self, wait: Event) -> bool:
        return any(fetch.b for fetch in begun_in(wait, self._fetches)) or self._slow_in(wait) > 0.0


def begun_in(wait: Event, in_order: Sequence[Event]) -> Sequence[Event]:
    first = bisect.bisect_left(in_order, wait.begin_ns, key=lambda event: event.begin_ns)
    return in_order[first : bisect.bisect_left(in_order, wait.end_ns, key=lambda event: event.begin_ns)]
