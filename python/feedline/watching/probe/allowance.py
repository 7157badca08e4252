# SPDX-License-Identifier: Apache-2.0
"""What the hooks of a process may cost it, and have.

Details, such as single samples, are timed only as long as they have cost less than ``DETAIL_SHARE`` of the time since
the first event (three times that after a late batch that was not looked at, until one was), and of batches and steps
only some are recorded where all would cost more than ``COST_SHARE``. What a hook costs is measured where it runs: after
milliseconds of other work none of it is in the CPU's caches, and it takes ten times as long as in a loop of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from feedline.watching.probe import events
from feedline.watching.probe.pace import Pace

DETAIL_SHARE = 0.001
COST_SHARE = 0.0015
_FREE_DETAIL_NS = 250_000  # so that short runs have details too
_FREE_NS = 100_000  # and all of their first steps
_TOLD_NS = 50_000  # what the hooks have spent is told whenever it is so much
# Where a hook took longer, the interpreter collected garbage in it, of the whole script, which was due anyway: 100 ms
# with torch imported.
_MOST_OF_HOOK_NS = 1_000_000
_WEIGHT = 1 / 16  # of what an event just cost, in what one is taken to cost
_WEIGHT_OF_DETAIL = 1 / 4  # there are fewer of such batches
_COLD = 3  # times the calibrated cost of an event: what the first details are taken to cost
_CALIBRATIONS, _OF_EACH = 9, 12  # the median of so many means: a collection of garbage in between is no cost of events
_LATE_TIMES, _LATE_NS = 2, 1_000_000  # of a batch's samples, beside those of others
_CURIOUS_TIMES, _CURIOUS_FETCHES = 3, 64  # after a late batch: what details may cost, and for how many batches

clock = time.perf_counter_ns
cpu_clock = time.thread_time_ns


class Local(threading.local):
    """What the hooks of a thread tell each other."""

    hooks_ns = 0  # CPU of hooks inside a batch that the one around them has not paid yet
    charged_ns = 0  # CPU of all others
    unseen = 0  # fetches that are to pass unseen
    in_next = False  # of the loop's thread, where the call is seen
    by_task = False  # a worker of torch's: its tasks say which fetches are seen
    longest = 0  # sample of the fetch before, where its samples were timed; ns
    sends = False  # a worker's thread that packs batches
    packing_runs = 1.0  # share of the time of the last seen batch's packing
    sent_until = 0  # when it has been received, perhaps: twice as long after its packing as that took


class Allowance:
    """Of one process. Times are in ns."""

    def __init__(self) -> None:
        self.local = Local()
        self.begin()

    def begin(self) -> None:
        """Nothing is spent yet, and nothing measured."""
        self._started_ns = clock()
        self._detail_ns = self.spent_ns = self._untold_ns = 0
        self.event_ns, self.call_ns = 2000.0, 500  # what an event and a counted call cost, until it is measured
        self.detail_event_ns = _COLD * self.event_ns
        self.local.__dict__.clear()  # a worker may be forked in the middle of what its parent does: inside next()
        self.sample_mean_ns = self._fetch_mean_ns = 0.0
        self._curious = 0  # fetches for which details may take more

    def measured(self, event: Callable[[], object]) -> int:
        """Measures what an `event` and a counted call cost. The time is taken from now on, which is returned."""
        self._started_ns = now = clock()
        self.event_ns = _cost_of(event)
        self.detail_event_ns = _COLD * self.event_ns
        self.call_ns = _cost_of(lambda: _counted(_nothing, None))
        return now

    def record(self, kind: int, begin_ns: int, cpu_ns: int = 0, a: int = 0, b: int = 0, keep: bool = True) -> None:
        """Takes an event that began at `begin_ns` and ends now."""
        raise NotImplementedError

    def inside(self, ended_cpu_ns: int) -> None:
        """The CPU of a hook inside a batch, since its work ended: the hook around it pays, by `taken`."""
        took = min(cpu_clock() - ended_cpu_ns, _MOST_OF_HOOK_NS)
        self.local.hooks_ns += took + self.call_ns

    def taken(self) -> int:
        """What hooks inside have cost in this thread since the last call."""
        local = self.local
        took, local.hooks_ns = local.hooks_ns, 0
        return took

    def settle(self) -> None:
        """Pays for hooks that no other one is around."""
        if self.local.hooks_ns > _TOLD_NS:
            self.paid(0, 0, self.taken())

    def paid(self, took_ns: int, recorded: int = 0, inside_ns: int = 0) -> int:
        """CPU that a hook took for itself, and how much of that is charged to watching.

        `recorded`: for so many events and nothing else, 0: not only for events. `inside_ns`: of hooks inside it.
        """
        took_ns = min(took_ns + self.call_ns, _MOST_OF_HOOK_NS) + inside_ns  # entering it, too
        self.spent_ns += took_ns
        self._untold_ns += took_ns
        self.local.charged_ns += took_ns
        if recorded:
            self.event_ns += _WEIGHT * (took_ns / recorded - self.event_ns)
        self._tell_spent()
        return took_ns

    def passed(self, took_ns: int) -> None:
        """CPU of hooks that let work pass unseen: it is told, and is no reason to see less."""
        self._untold_ns += took_ns
        self._tell_spent()

    def _tell_spent(self) -> None:
        if self._untold_ns > _TOLD_NS:
            self.record(events.SPENT, clock(), int(self.event_ns), self._untold_ns, 0, False)
            self._untold_ns = 0

    def paid_once(self, took_ns: int) -> None:
        """CPU of what a process does once, as it makes its event file: no share of the time, like loading the probe."""
        self.record(events.STARTED, clock(), 0, took_ns, 0)

    def may_detail(self, expected_events: int) -> int:
        """What so many more events of detail are taken to cost, which counts as spent then; 0: they are too dear."""
        cost = max(int(expected_events * self.detail_event_ns), 1)
        share = _CURIOUS_TIMES * DETAIL_SHARE if self._curious else DETAIL_SHARE
        if self._detail_ns + cost > _FREE_DETAIL_NS + share * (clock() - self._started_ns):
            return 0
        self._detail_ns += cost
        return cost

    def detailed(self, expected_ns: int, made: int, took_ns: int) -> None:
        """What the details that may_detail() expected have come to: `made` events, which took so much CPU."""
        self._detail_ns += took_ns - expected_ns
        if made:
            self.detail_event_ns += _WEIGHT_OF_DETAIL * (took_ns / made - self.detail_event_ns)

    def standing_for(self, cost_ns: float) -> float:
        """How long a stretch of work, in ns, a unit is to stand for if seeing it costs so much; 0: all can be seen.

        Batches and steps of one process have one allowance: where it is overdrawn, as both would take all of it, either
        is seen less.
        """
        allowed = _FREE_NS + COST_SHARE * (clock() - self._started_ns)
        overdrawn = (self.spent_ns - self._detail_ns) / allowed
        return 0.0 if overdrawn <= 1 else overdrawn * cost_ns / COST_SHARE

    def unseen_after(self, took_ns: int, recorded: int, pace: Pace, number: int | None = None) -> int:
        """How many units of work are to pass unseen after one that lasted `took_ns` and cost `recorded` events.

        `number`: of that unit, where units have numbers that other processes know.
        """
        return pace.gap(took_ns, self.standing_for(recorded * self.event_ns), number)

    def was_late(self, took_ns: int, looked_at: bool) -> bool:
        """Whether a batch's samples took much longer than those of others, which is then an event that is kept.

        Where they were not looked at one by one, more of the following are, until those of a late one were: whether one
        sample makes it late is not told by any other.
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
    """CPU, as a busy machine makes nothing dearer for the script."""
    means = []
    for _ in range(_CALIBRATIONS):
        before = cpu_clock()
        for _ in range(_OF_EACH):
            work()
        means.append((cpu_clock() - before) // _OF_EACH)
    return sorted(means)[_CALIBRATIONS // 2]


def _counted(call: Any, argument: Any) -> Any:
    """As much work as the hook of a call that is only counted."""
    begin = clock()
    try:
        return call(argument)
    finally:
        clock() - begin


def _nothing(_argument: Any) -> None:
    return None
