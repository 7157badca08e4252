# SPDX-License-Identifier: Apache-2.0
"""Where the hooks of one process put what they see: its event ring, opened at the first event, and small JSON notes.

A forked child gets a ring of its own. The recorder keeps its own cost down: details, such as single samples, are
timed only as long as they have cost less than ``DETAIL_SHARE`` of the time since the first event (three times that
after a late batch that was not looked at, until one was), and of batches and
steps only some are recorded where all would cost more than ``COST_SHARE``. What a hook costs is measured where it
runs: after milliseconds of other work none of it is in the CPU's caches, and it takes ten times as long as in a loop of
its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from feedline import _engine
from feedline.watching.probe import events
from feedline.watching.probe.opened_files import OpenedFiles
from feedline.watching.probe.pace import Pace
from feedline.watching.probe.seen_waits import SeenWaits

CAPACITY = 16384  # events of 56 bytes
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
_MOST_NOTES = 16  # of a process: a run of days says no more
_MOST_LOADERS = 64  # whose settings are kept

clock = time.perf_counter_ns
cpu_clock = time.thread_time_ns


class _Local(threading.local):
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


class Recorder:
    """Of one process. No method raises: a probe that fails falls silent."""

    def __init__(self, session: str) -> None:
        self.session = Path(session)
        self.silent = False  # in the copy for experiments and its workers
        self.copied = False  # this process has been copied, or will not be
        # hears of each loader before a loop over it begins: whether it has made a copy of the process; a verb's own
        self.offer: Callable[[Any], bool] = _declined
        self.load = (0, 0)  # what loading the probe took: ns of CPU, ns
        self.passes = 0  # calls of iter() so far; forked workers keep the number
        self.opened = OpenedFiles(self)
        self.waits = SeenWaits(self)
        self.local = _Local()
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self.opened.restart()
        self.waits.restart()
        self._ring: _engine.EventRing | None = None
        self._failed = False
        self._opening = threading.Lock()
        self._started_ns = clock()
        self._detail_ns = self.spent_ns = self._untold_ns = 0
        self.event_ns, self.call_ns = 2000.0, 500  # what an event and a counted call cost, until it is measured
        self.detail_event_ns = _COLD * self.event_ns
        self.local.__dict__.clear()  # a worker may be forked in the middle of what its parent does: inside next()
        self.__dict__.pop("record", None)
        self.in_worker = False
        # a worker's finished batches that are seen, by id(), and the kind of their packing's event; None: not known
        self.sending: dict[int, int] | None = None
        self.sample_mean_ns = self._fetch_mean_ns = 0.0
        self._curious = 0  # fetches for which details may take more
        self._notes = 0
        self._names: dict[str, int] = {}
        self._loaders: dict[
            str, list[tuple[Callable[[], object] | None, int]]
        ] = {}  # by settings: whose, and its number
        self._numbers = 0

    def record(self, kind: int, begin_ns: int, cpu_ns: int = 0, a: int = 0, b: int = 0, keep: bool = True) -> None:
        """An event that began at `begin_ns` and ends now. The ring's own method takes this one's place."""
        ring = self._open()
        if ring is not None:
            ring.record(kind, begin_ns, cpu_ns, a, b, keep)

    def _open(self) -> _engine.EventRing | None:
        if self._failed or self.silent:
            return None
        with self._opening:
            if self._ring is None and not self._failed:
                try:
                    self._ring = self._make_ring()
                    self.record = self._ring.record  # type: ignore[method-assign]
                except Exception as error:
                    self._failed = True
                    self.note(f"process {os.getpid()} could not make its event file: {error}")
        return self._ring

    def _make_ring(self) -> _engine.EventRing:
        # a number of a process may come again: the time makes the name its own
        ring = _engine.EventRing(str(self.session / f"{os.getpid()}.{clock()}.ring"), CAPACITY)
        self._started_ns = begin = clock()
        self.event_ns = _cost_of(lambda: _recorded(ring))
        self.detail_event_ns = _COLD * self.event_ns
        self.call_ns = _cost_of(lambda: _counted(_nothing, None))
        ring.record(events.COST, begin, 0, int(self.event_ns), self.call_ns, True)
        if any(self.load):  # not of a forked child, which has it from its parent
            ring.record(events.STARTED, clock(), 0, *self.load, True)
            self.load = (0, 0)
        return ring

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

    def kind_of_transform(self, name: str) -> int | None:
        """The kind of this transform's events; None once there are too many names."""
        kind = self._names.get(name)
        if kind is None and len(self._names) < events.TRANSFORMS:
            kind = self._names[name] = events.FIRST_TRANSFORM + len(self._names)
            self.write_json(f"{os.getpid()}.names", {str(k): n for n, k in self._names.items()})
        return kind

    def tell_of_loop(self) -> None:
        """The first of this process begins. From then on the run is sampled closely."""
        with contextlib.suppress(OSError):
            os.close(os.open(self.session / events.LOOPS, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def number_of_loader(self, facts: dict[str, Any], loader: object = None) -> int:
        """The number of a loader with these settings, which a script may make anew in every epoch.

        Two that live at the same time are two, whatever their settings: a loop may take from both in turn.
        """
        alike = self._loaders.setdefault(repr(sorted(facts.items())), [])
        for position, (owner, number) in enumerate(alike):
            one = owner() if owner is not None else None
            if one is None or one is loader or len(alike) >= _MOST_LOADERS:
                alike[position] = (_weakly(loader), number)
                return number
        number = self._numbers
        self._numbers += 1
        alike.append((_weakly(loader), number))
        self.write_loader(number, facts)
        return number

    def write_loader(self, number: int, facts: dict[str, Any]) -> None:
        if number < _MOST_LOADERS:
            self.write_json(f"{os.getpid()}.{number}.loader", {**facts, "pid": os.getpid(), "number": number})

    def note(self, sentence: str) -> None:
        self._notes += 1
        if self._notes > _MOST_NOTES:
            return
        with contextlib.suppress(OSError), open(self.session / f"{os.getpid()}.note", "a") as file:
            file.write(sentence + "\n")

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, TypeError, ValueError):
            unfinished = self.session / f".{name}.{os.getpid()}"
            unfinished.write_text(json.dumps(value))
            unfinished.replace(self.session / name)

    def rewrite_loader(self, number: int, facts: dict[str, Any]) -> None:
        """As write_loader, for what changes again and again: in the file's place, by one call, a tenth of the cost."""
        if number >= _MOST_LOADERS:
            return
        with contextlib.suppress(OSError, TypeError, ValueError):
            text = json.dumps({**facts, "pid": os.getpid(), "number": number}).encode()
            name = f"{self.session}/{os.getpid()}.{number}.loader"
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, text.ljust(os.fstat(file).st_size))  # blanks behind a JSON text are nothing
            finally:
                os.close(file)


def _declined(_loader: Any) -> bool:
    return False


def _weakly(loader: object) -> Callable[[], object] | None:
    try:
        return weakref.ref(loader)
    except TypeError:
        return None


def _cost_of(work: Callable[[], object]) -> int:
    """CPU, as a busy machine makes nothing dearer for the script."""
    means = []
    for _ in range(_CALIBRATIONS):
        before = cpu_clock()
        for _ in range(_OF_EACH):
            work()
        means.append((cpu_clock() - before) // _OF_EACH)
    return sorted(means)[_CALIBRATIONS // 2]


def _recorded(ring: _engine.EventRing) -> None:
    """As much work as the hook of an event."""
    begin, cpu = clock(), cpu_clock()
    ring.record(0, begin, cpu_clock() - cpu, 0, 0, False)


def _counted(call: Any, argument: Any) -> Any:
    """As much work as the hook of a call that is only counted."""
    begin = clock()
    try:
        return call(argument)
    finally:
        clock() - begin


def _nothing(_argument: Any) -> None:
    return None
