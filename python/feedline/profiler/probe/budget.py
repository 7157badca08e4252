# SPDX-License-Identifier: Apache-2.0
"""Limits and accounts for the cost of a process's hooks.

Details, such as single samples, are timed only while they have cost less than ``DETAIL_SHARE`` of the time since the
first event (three times that after a late batch without details, until one has them). Only some batches and steps are
recorded if all would cost more than ``COST_SHARE``. A hook's cost is measured in place: after milliseconds of other
work the CPU's caches are cold, and a hook takes ten times as long as in a tight loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from feedline.profiler.probe import events
from feedline.profiler.probe.sampling import WorkSampler

DETAIL_SHARE = 0.001
COST_SHARE = 0.0015
_FREE_DETAIL_NS = 250_000  # so that short runs also have details
_FREE_NS = 100_000  # and all of their first steps
_RECORDED_NS = 50_000  # amount of hook time after which a SPENT event is recorded
# If a hook took longer, a garbage collection of the whole script ran in it, which was due anyway: 100 ms with torch
# imported.
_MOST_OF_HOOK_NS = 1_000_000
_WEIGHT = 1 / 16  # weight of the latest cost in the running estimate
_WEIGHT_OF_DETAIL = 1 / 4  # such batches are rarer
_COLD = 3  # multiple of an event's calibrated cost: initial estimate for details
_CALIBRATIONS, _OF_EACH = 9, 12  # number of means whose median is used, to exclude a garbage collection
_LATE_TIMES, _LATE_NS = 2, 1_000_000  # duration of a batch's samples, relative to others
_CURIOUS_TIMES, _CURIOUS_FETCHES = 3, 64  # after a late batch: the limit for details, and the number of batches it
# applies to

clock = time.perf_counter_ns
cpu_clock = time.thread_time_ns


class Local(threading.local):
    """Per-thread state shared by hooks."""

    hooks_ns = 0  # CPU of hooks inside a batch, not yet charged by the enclosing hook
    charged_ns = 0  # CPU of all other hooks
    unseen = 0  # fetches to skip
    in_next = False  # for the loop's thread, while next() is recorded
    by_task = False  # a torch worker: its tasks determine which fetches are recorded
    longest = 0  # mean time of a sample of the previous fetch, if its samples were timed; ns
    sends = False  # a worker's thread that packs batches
    packing_runs = 1.0  # packing time of the last recorded batch
    sent_until = 0  # estimated time of its receipt: after packing, twice that duration


class Budget:
    """Cost account of one process. Times are in ns."""

    def __init__(self) -> None:
        self.local = Local()
        self.begin()

    def begin(self) -> None:
        """Resets the account and the measurements."""
        self._started_ns = clock()
        self._detail_ns = self.spent_ns = self._unrecorded_ns = 0
        self.event_ns, self.call_ns = 2000.0, 500  # cost of an event and of a counted call, until measured
        self.detail_event_ns = _COLD * self.event_ns
        self.local.__dict__.clear()  # a worker may be forked while its parent is inside next()
        self.sample_mean_ns = self._fetch_mean_ns = 0.0
        self._curious = 0  # fetches with a higher limit for details

    def measured(self, event: Callable[[], object]) -> int:
        """Measures the cost of an `event` and a counted call. Starts the clock, and returns its time."""
        self._started_ns = now = clock()
        self.event_ns = _cost_of(event)
        self.detail_event_ns = _COLD * self.event_ns
        self.call_ns = _cost_of(lambda: _counted(_nothing, None))
        return now

    def record(self, kind: int, begin_ns: int, cpu_ns: int = 0, a: int = 0, b: int = 0, keep: bool = True) -> None:
        """Accounts for an event from `begin_ns` until now."""
        raise NotImplementedError

    def inside(self, ended_cpu_ns: int) -> None:
        """Adds the CPU of a hook inside a batch after its work ended: the enclosing hook charges it with `taken`."""
        took = min(cpu_clock() - ended_cpu_ns, _MOST_OF_HOOK_NS)
        self.local.hooks_ns += took + self.call_ns

    def taken(self) -> int:
        """Returns the cost of inner hooks in this thread since the last call."""
        local = self.local
        took, local.hooks_ns = local.hooks_ns, 0
        return took

    def settle(self) -> None:
        """Charges hooks that have no enclosing hook."""
        if self.local.hooks_ns > _RECORDED_NS:
            self.paid(0, 0, self.taken())

    def paid(self, took_ns: int, recorded: int = 0, inside_ns: int = 0) -> int:
        """Returns the CPU of a hook, and the part of it that is charged to profiling.

        `recorded`: number of events, if it did nothing else; 0 otherwise. `inside_ns`: cost of inner hooks.
        """
        took_ns = min(took_ns + self.call_ns, _MOST_OF_HOOK_NS) + inside_ns  # includes entering the hook
        self.spent_ns += took_ns
        self._unrecorded_ns += took_ns
        self.local.charged_ns += took_ns
        if recorded:
            self.event_ns += _WEIGHT * (took_ns / recorded - self.event_ns)
        self._record_spent()
        return took_ns

    def passed(self, took_ns: int) -> None:
        """Accounts for the CPU of hooks that skip work: it is reported, but does not reduce recording."""
        self._unrecorded_ns += took_ns
        self._record_spent()

    def _record_spent(self) -> None:
        if self._unrecorded_ns > _RECORDED_NS:
            self.record(events.SPENT, clock(), int(self.event_ns), self._unrecorded_ns, 0, False)
            self._unrecorded_ns = 0

    def paid_once(self, took_ns: int) -> None:
        """Accounts for one-time CPU, such as creating the event file or loading the probe, which is not a share of the
        time.
        """
        self.record(events.STARTED, clock(), 0, took_ns, 0)

    def may_detail(self, expected_events: int) -> int:
        """Reserves the expected cost of this many detail events and returns it; 0 if they are too expensive."""
        cost = max(int(expected_events * self.detail_event_ns), 1)
        share = _CURIOUS_TIMES * DETAIL_SHARE if self._curious else DETAIL_SHARE
        if self._detail_ns + cost > _FREE_DETAIL_NS + share * (clock() - self._started_ns):
            return 0
        self._detail_ns += cost
        return cost

    def detailed(self, expected_ns: int, made: int, took_ns: int) -> None:
        """Replaces the reservation of may_detail() by the actual cost: `made` events and their CPU."""
        self._detail_ns += took_ns - expected_ns
        if made:
            self.detail_event_ns += _WEIGHT_OF_DETAIL * (took_ns / made - self.detail_event_ns)

    def standing_for(self, cost_ns: float) -> float:
        """Returns the length of work, in ns, that a recorded unit must represent at this cost; 0 if all can be
        recorded.

        Batches and steps of one process share a limit: if their sum exceeds the limit, fewer of both are recorded.
        """
        allowed = _FREE_NS + COST_SHARE * (clock() - self._started_ns)
        overdrawn = (self.spent_ns - self._detail_ns) / allowed
        return 0.0 if overdrawn <= 1 else overdrawn * cost_ns / COST_SHARE

    def unseen_after(self, took_ns: int, recorded: int, pace: WorkSampler, number: int | None = None) -> int:
        """Returns the number of units to skip after one that lasted `took_ns` and cost `recorded` events.

        `number`: of that unit, if units have numbers that other processes know.
        """
        return pace.gap(took_ns, self.standing_for(recorded * self.event_ns), number)

    def was_late(self, took_ns: int, looked_at: bool) -> bool:
        """Whether a batch's samples took much longer than those of other batches, so that its event is retained.

        If the samples were not timed separately, more of the next batches are timed in detail until a late batch was.
        Only these details show whether a single sample makes batches late.
        """
        mean = self._fetch_mean_ns
        self._fetch_mean_ns = took_ns if mean == 0 else mean + (min(took_ns, 10 * mean) - mean) / 32
        late = took_ns > _LATE_NS and took_ns > _LATE_TIMES * mean > 0
        if late:
            self._curious = 0 if looked_at else _CURIOUS_FETCHES
        else:
            self._curious = max(self._curious - 1, 0)
        return late


def _cost_of(work: Callable[[], object]) -> int:
    """Uses CPU time, as a busy machine does not make hooks more expensive for the script."""
    means = []
    for _ in range(_CALIBRATIONS):
        before = cpu_clock()
        for _ in range(_OF_EACH):
            work()
        means.append((cpu_clock() - before) // _OF_EACH)
    return sorted(means)[_CALIBRATIONS // 2]


def _counted(call: Any, argument: Any) -> Any:
    """The same work as the hook of a counted call."""
    begin = clock()
    try:
        return call(argument)
    finally:
        clock() - begin


def _nothing(_argument: Any) -> None:
    return None
