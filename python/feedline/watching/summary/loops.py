# SPDX-License-Identifier: Apache-2.0
"""Whose loop a recording is judged by: the process, its loader, the workers of that loader, and the other ranks."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from feedline.watching.probe import events
from feedline.watching.probe.events import Event, Total
from feedline.watching.recordings import ProcessRecord, Recording
from feedline.watching.summary.tasks import done_of

_ENOUGH = 3  # to know how much they differ
_AS_LONG = 0.7
_WAITED_ALIKE = 0.5
_ALIKE = 1.5  # times the time that others take to make a batch: a rank below is no slower, its turn is only later


class LoopOfLoader:
    """One process's loop over one loader."""

    def __init__(self, process: ProcessRecord, loader: int) -> None:
        self.process, self.loader = process, loader
        kinds = (events.ITER, events.WAIT, events.STEP, events.LAST)
        self.events = [e for e in process.events if e.kind in kinds and e.a == loader]
        unseen = (e for e in process.events if e.kind == events.UNSEEN_CYCLES and e.a == loader)
        self.told = told(self.events, sum(event.cpu_ns for event in unseen))
        self.time_ns = sum(one.wall_ns for one in self.told)

    @property
    def waited_ns(self) -> float:
        return sum(one.wall_ns for one in self.told if one.event.kind == events.WAIT)


class Told(NamedTuple):
    """An event of a loop, with those alike that passed unseen."""

    event: Event
    times: int  # how many there were, itself among them
    weight: float  # how many of itself take as long as all of these
    cpu_weight: float  # and as much CPU

    @property
    def wall_ns(self) -> float:
        return self.weight * self.event.wall_ns

    @property
    def cpu_ns(self) -> float:
        return self.cpu_weight * self.event.cpu_ns

    @property
    def cpu_each_ns(self) -> float:
        """Of one of `weight`."""
        return self.cpu_ns / self.weight if self.weight else 0.0


def told(loop_events: Sequence[Event], unseen_cpu_ns: float = 0.0) -> list[Told]:
    """A loop's events, and what each stands for: a step for those that passed unseen before it, as does the wait that
    follows it. What passed unseen before the end of an epoch comes as what was seen last, once more.

    How long they took together is the time between two events that were seen, and is known; so is their CPU,
    `unseen_cpu_ns`, but for that before the end of an epoch. _of_steps() says how steps and waits share it.
    """
    counted = list(_counted(loop_events))
    factors = _factors(loop_events, counted, _between_ns(loop_events), _wall)
    before_a_step = [one for one in counted if one[2]]
    cpu_factors = _factors(loop_events, before_a_step, unseen_cpu_ns, _cpu) if unseen_cpu_ns else factors
    return [
        Told(
            event,
            times,
            is_seen + (times - is_seen) * factors.get(event.kind, 1.0),
            is_seen + (times - is_seen) * cpu_factors.get(event.kind, 1.0),
        )
        for event, times, is_seen in counted
    ]


def _wall(event: Event) -> int:
    return event.wall_ns


def _cpu(event: Event) -> int:
    return event.cpu_ns


class _Unseen(NamedTuple):
    times: int
    ns: float  # that they would take if they were as those that stand for them


def _factors(
    loop_events: Sequence[Event],
    counted: Sequence[tuple[Event, int, bool]],
    known_ns: float,
    of: Callable[[Event], int],
) -> dict[int, float]:
    """By kind: what unseen ones take, `known_ns` together, in parts of what those take that stand for them."""
    steps, waits = (_unseen(counted, kind, of) for kind in (events.STEP, events.WAIT))
    of_steps = _of_steps(loop_events, known_ns, steps, waits, of)
    return {events.STEP: of_steps / max(steps.ns, 1), events.WAIT: (known_ns - of_steps) / max(waits.ns, 1)}


def _unseen(counted: Iterable[tuple[Event, int, bool]], kind: int, of: Callable[[Event], int]) -> _Unseen:
    alike = [(times - is_seen, of(event)) for event, times, is_seen in counted if event.kind == kind]
    return _Unseen(sum(times for times, _ in alike), sum(times * ns for times, ns in alike))


def _of_steps(
    loop_events: Sequence[Event], between_ns: float, steps: _Unseen, waits: _Unseen, of: Callable[[Event], int]
) -> float:
    """How much of the time of unseen steps and waits is that of the steps; likewise of their CPU.

    What it is beyond those that were seen, or below, falls on those that differ more among themselves: of two sums of
    independent draws, whose sum is known, the best guess moves each by its part of the variance.
    """
    if not steps.ns or not waits.ns:
        return between_ns if steps.ns else 0.0
    variances = [_variance(loop_events, kind, of) for kind in (events.STEP, events.WAIT)]
    share = steps.ns / (steps.ns + waits.ns)
    if None not in variances:
        varied = [unseen.times * (one or 0.0) for unseen, one in zip((steps, waits), variances, strict=True)]
        share = varied[0] / sum(varied) if sum(varied) else share
    beyond = between_ns - steps.ns - waits.ns
    return min(max(steps.ns + share * beyond, 0.0), between_ns)


def _variance(loop_events: Sequence[Event], kind: int, of: Callable[[Event], int]) -> float | None:
    """Of the steps or waits that were seen, but a loop's first step, which holds what is done once, and the waits for
    epochs' first batches. None: too few.
    """
    pairs = pairwise(loop_events)
    seen = [of(event) for before, event in pairs if event.kind == kind and before.kind != events.ITER]
    seen = seen[1 if kind == events.STEP else 0 :]
    return statistics.variance(seen) if len(seen) >= _ENOUGH else None


def _counted(loop_events: Iterable[Event]) -> Iterator[tuple[Event, int, bool]]:
    """(event, how many alike it stands for, whether it is one of them)."""
    step: Event | None = None
    wait: Event | None = None
    waits = 0  # that passed unseen, and that the next one that is seen stands for
    for event in loop_events:
        alike = 1
        if event.kind == events.ITER:
            step, wait, waits = None, None, 0
        elif event.kind == events.STEP:
            step, alike = event, max(event.b, 1)
            waits = alike - 1
        elif event.kind == events.WAIT:
            wait, alike, waits = event, 1 + waits, 0
        elif event.kind == events.LAST and step is not None and wait is not None:
            if event.b:
                yield step, event.b, False
            if waits + max(event.b - 1, 0):
                yield wait, waits + max(event.b - 1, 0), False
        yield event, alike, True


def _between_ns(loop_events: Sequence[Event]) -> int:
    """Time of the steps and waits that no event tells of."""
    between = 0
    for before, event in pairwise(loop_events):
        unseen = event.b > 1 if event.kind == events.STEP else event.kind == events.LAST and event.b > 0
        if unseen and before.kind == events.WAIT:
            between += max(event.begin_ns - before.end_ns, 0)
    return between


def loops_of(processes: Iterable[ProcessRecord]) -> list[LoopOfLoader]:
    """The loop that takes most time of each process that has any; the longest first.

    Of several loaders that one loop takes from side by side, the one that it waits for most.
    """
    loops = []
    for process in processes:
        loaders = {e.a for e in process.events if e.kind == events.WAIT}
        if loaders:
            loops.append(most_waited_for([LoopOfLoader(process, n) for n in loaders]))
    return sorted(loops, key=lambda loop: -loop.time_ns)


def most_waited_for(loops: Sequence[LoopOfLoader]) -> LoopOfLoader:
    """Of those that take about as long as the longest."""
    return max(_about_the_longest(loops), key=lambda loop: loop.waited_ns)


def least_waited_for(loops: Sequence[LoopOfLoader]) -> LoopOfLoader:
    """Of those that take about as long as the longest."""
    return min(_about_the_longest(loops), key=lambda loop: loop.waited_ns)


def _about_the_longest(loops: Sequence[LoopOfLoader]) -> list[LoopOfLoader]:
    longest = max(loop.time_ns for loop in loops)
    return [loop for loop in loops if loop.time_ns >= _AS_LONG * longest]


def slowest_beside(recording: Recording, loop: LoopOfLoader) -> LoopOfLoader:
    """Of loaders that one loop takes from side by side and waits for alike, the one whose batches take longest to make.

    Whichever is asked first is waited for while the others' batches are made, and any may be late for want of a CPU.
    """
    numbers = {event.a for event in loop.process.events if event.kind == events.WAIT}
    loops = _about_the_longest([LoopOfLoader(loop.process, number) for number in sorted(numbers)])
    waited = max(one.waited_ns for one in loops)
    alike = [one for one in loops if one.waited_ns >= _WAITED_ALIKE * waited]
    return max(alike, key=lambda one: _making_ns(recording, one)) if len(alike) > 1 else loop


def _making_ns(recording: Recording, loop: LoopOfLoader) -> float:
    """What the makers of this loop's batches need for all of them, side by side."""
    workers = workers_of(recording, loop)
    if not workers:
        return loop.waited_ns
    whole = sum((done_of(process.totals) for process in workers), Total())
    return whole.wall_ns / max(int(facts_of(recording, loop).get("num_workers") or 0), 1)


def facts_of(recording: Recording, loop: LoopOfLoader) -> dict[str, Any]:
    for facts in recording.loaders:
        if facts.get("pid") == loop.process.pid and facts.get("number") == loop.loader:
            return facts
    return {}


def workers_of(recording: Recording, loop: LoopOfLoader) -> list[ProcessRecord]:
    """Those that this loader started; of spawned ones it is not known, and all of the process are taken."""
    passes = {e.b for e in loop.process.events if e.kind == events.PASS and e.a == loop.loader}
    workers = []
    for process in recording.processes:
        ready = next((e for e in process.events if e.kind == events.READY), None)
        if ready is not None and ready.a == loop.process.pid:
            started_by = ready.b // events.WORKERS
            if started_by == 0 or not passes or started_by in passes:
                workers.append(process)
    return workers


def ranks_of(recording: Recording, loops: Sequence[LoopOfLoader]) -> tuple[tuple[float, ...], bool]:
    """Share of waiting by rank, and whether the one that waits most also takes longer than others to make a batch.

    Ranks meet in every step. Of equal ones too, one comes last and waits for its batch, and the others for it.
    """
    by_rank: dict[int, tuple[float, float | None]] = {}
    for loop in loops:
        rank = facts_of(recording, loop).get("rank")
        if rank is not None and str(rank).isdigit():
            by_rank[int(rank)] = (loop.waited_ns / max(loop.time_ns, 1), _made_ns(recording, loop))
    if len(by_rank) < 2:
        return (), False
    _, made = max(by_rank.values(), key=lambda waited_made: waited_made[0])
    others = sorted(m for _, m in by_rank.values() if m is not None)
    usual = others[(len(others) - 1) // 2] if others else 0.0
    slower = made is None or made > _ALIKE * usual
    return tuple(share for _, (share, _) in sorted(by_rank.items())), slower


def _made_ns(recording: Recording, loop: LoopOfLoader) -> float | None:
    """Mean time of a batch's making, wherever the batches of this loop are made."""
    makers = workers_of(recording, loop) or [loop.process]
    tasks = [done_of(process.totals) for process in makers]
    fetches = [process.totals.get(events.FETCH, Total()) for process in makers]
    done = sum((task if task.times else fetch for task, fetch in zip(tasks, fetches, strict=True)), Total())
    return done.wall_ns / done.times if done.times else None
