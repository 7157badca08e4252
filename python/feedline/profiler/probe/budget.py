# SPDX-License-Identifier: Apache-2.0
"""Limits the cost of the hooks in a process, and accounts for it.

Details, such as single samples, are timed only while their cost is less than ``DETAIL_SHARE`` of the time since the
first event; after a late batch without details, the limit is tripled until details of a late batch are recorded. If
recording all batches and steps would cost more than ``COST_SHARE``, only some of them are recorded. The cost of a hook
is measured in place, because after milliseconds of other work the CPU's caches are cold, so that a hook takes ten times
as long as in a tight loop.
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
    """Accounts for the cost of profiling in one process. Times are in nanoseconds."""

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
        """Measures the cost of recording an `event` and of a counted call. Starts the clock, and returns the current
        time.
        """
        self._started_ns = now = clock()
        self.event_ns = _cost_of(event)
        self.detail_event_ns = _COLD * self.event_ns
        self.call_ns = _cost_of(lambda: _counted(_nothing, None))
        return now

    def record(self, kind: int, begin_ns: int, cpu_ns: int = 0, a: int = 0, b: int = 0, keep: bool = True) -> None:
        """Records an event that began at `begin_ns` and ends now."""
        raise NotImplementedError

    def inside(self, ended_cpu_ns: int) -> None:
        """Adds the CPU time that a hook inside a batch has used since its work ended; the enclosing hook obtains this
        time from `taken` and charges it.
        """
        took = min(cpu_clock() - ended_cpu_ns, _MOST_OF_HOOK_NS)
        self.local.hooks_ns += took + self.call_ns

    def taken(self) -> int:
        """Returns the cost of inner hooks in this thread since the last call."""
        local = self.local
        took, local.hooks_ns = local.hooks_ns, 0
        return took

    def settle(self) -> None:
        """Charges the cost of hooks that have no enclosing hook."""
        if self.local.hooks_ns > _RECORDED_NS:
            self.paid(0, 0, self.taken())

    def paid(self, took_ns: int, recorded: int = 0, inside_ns: int = 0) -> int:
        """Charges the CPU time of a hook to profiling, and returns it.

        `recorded`: number of recorded events if the hook did nothing else, otherwise 0. `inside_ns`: cost of inner
        hooks.
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
        """Accounts for the CPU time of hooks that skip work: this time is reported, but does not reduce recording."""
        self._unrecorded_ns += took_ns
        self._record_spent()

    def _record_spent(self) -> None:
        if self._unrecorded_ns > _RECORDED_NS:
            self.record(events.SPENT, clock(), int(self.event_ns), self._unrecorded_ns, 0, False)
            self._unrecorded_ns = 0

    def paid_once(self, took_ns: int) -> None:
        """Accounts for one-time CPU costs, such as creating the event file or loading the probe, which do not count as
        a share of the time.
        """
        self.record(events.STARTED, clock(), 0, took_ns, 0)

    def may_detail(self, expected_events: int) -> int:
        """Reserves and returns the expected cost of this many detail events; returns 0 if they are too expensive."""
        cost = max(int(expected_events * self.detail_event_ns), 1)
        share = _CURIOUS_TIMES * DETAIL_SHARE if self._curious else DETAIL_SHARE
        if self._detail_ns + cost > _FREE_DETAIL_NS + share * (clock() - self._started_ns):
            return 0
        self._detail_ns += cost
        return cost

    def detailed(self, expected_ns: int, made: int, took_ns: int) -> None:
        """Replaces the reservation of may_detail() with the actual cost: `made` events and their CPU time."""
        self._detail_ns += took_ns - expected_ns
        if made:
            self.detail_event_ns += _WEIGHT_OF_DETAIL * (took_ns / made - self.detail_event_ns)

    def standing_for(self, cost_ns: float) -> float:
        """Returns how much work, in ns, each recorded unit must represent at this cost; 0 if all units can be
        recorded.

        Batches and steps of one process share a limit: if their sum exceeds it, fewer of both are recorded.
        """
        allowed = _FREE_NS + COST_SHARE * (clock() - self._started_ns)
        overdrawn = (self.spent_ns - self._detail_ns) / allowed
        return 0.0 if overdrawn <= 1 else overdrawn * cost_ns / COST_SHARE

    def unseen_after(self, took_ns: int, recorded: int, pace: WorkSampler, number: int | None = None) -> int:
        """Returns the number of units to skip after a unit that lasted `took_ns` and recorded `recorded` events.

        `number`: that unit's number, if units have the same numbers in other processes.
        """
        return pace.gap(took_ns, self.standing_for(recorded * self.event_ns), number)

    def was_late(self, took_ns: int, looked_at: bool) -> bool:
        """Whether a batch's samples took much longer than other batches' samples, so that the batch's event is
        retained.

        If the samples were not timed separately, more of the next batches are timed in detail until one of them is
        late. Only such details show whether a single sample makes a batch late.
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
    """Uses CPU time, because a busy machine does not make hooks more expensive for the script."""
    means = []
    for _ in range(_CALIBRATIONS):
        before = cpu_clock()
        for _ in range(_OF_EACH):
            work()
        means.append((cpu_clock() - before) // _OF_EACH)
    return sorted(means)[_CALIBRATIONS // 2]


def _counted(call: Any, argument: Any) -> Any:
    """Does the same work as the hook of a counted call."""
    begin = clock()
    try:
        return call(argument)
    finally:
        clock() - begin


def _nothing(_argument: Any) -> None:
    return None
