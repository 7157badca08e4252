# SPDX-License-Identifier: Apache-2.0
"""Selects the loop of a recording to analyse: the process, its loader, that loader's workers, and the other ranks."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event, Total
from feedline.profiler.recordings import ProcessRecord, Recording
from feedline.profiler.summary.tasks import done_of

_ENOUGH = 3  # minimum number of events for their variance
_AS_LONG = 0.7
_WAITED_ALIKE = 0.5
_ALIKE = 1.5  # multiple of the others' time to make a batch: a rank below it is not slower, only later


class LoopOfLoader:
    """One process's iteration over one loader."""

    def __init__(self, process: ProcessRecord, loader: int) -> None:
        self.process, self.loader = process, loader
        kinds = (events.ITER, events.WAIT, events.STEP, events.LAST)
        self.events = [e for e in process.events if e.kind in kinds and e.a == loader]
        unseen = (e for e in process.events if e.kind == events.UNSEEN_CYCLES and e.a == loader)
        self.weighted_events = weighted_events(self.events, sum(event.cpu_ns for event in unseen))
        self.time_ns = sum(one.wall_ns for one in self.weighted_events)

    @property
    def waited_ns(self) -> float:
        return sum(one.wall_ns for one in self.weighted_events if one.event.kind == events.WAIT)


class WeightedEvent(NamedTuple):
    """An event of a loop, which may represent similar unrecorded events."""

    event: Event
    times: int  # number of events, including itself
    weight: float  # number of copies of itself that take as long as all of these
    cpu_weight: float  # and use as much CPU

    @property
    def wall_ns(self) -> float:
        return self.weight * self.event.wall_ns

    @property
    def cpu_ns(self) -> float:
        return self.cpu_weight * self.event.cpu_ns

    @property
    def cpu_each_ns(self) -> float:
        """CPU time per unit of `weight`."""
        return self.cpu_ns / self.weight if self.weight else 0.0


def weighted_events(loop_events: Sequence[Event], unseen_cpu_ns: float = 0.0) -> list[WeightedEvent]:
    """Returns a loop's events with their weights: a step represents the unrecorded steps before it, and the wait that
    follows the step represents the unrecorded waits. Unrecorded events before the end of an epoch are treated as
    repetitions of the last recorded one.

    The total time of unrecorded events between two recorded ones is known, and so is their CPU time `unseen_cpu_ns`,
    except before the end of an epoch. _of_steps() divides this time between steps and waits.
    """
    counted = list(_counted(loop_events))
    factors = _factors(loop_events, counted, _between_ns(loop_events), _wall)
    before_a_step = [one for one in counted if one[2]]
    cpu_factors = _factors(loop_events, before_a_step, unseen_cpu_ns, _cpu) if unseen_cpu_ns else factors
    return [
        WeightedEvent(
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
    ns: float  # time that they would take if they equalled their representatives


def _factors(
    loop_events: Sequence[Event],
    counted: Sequence[tuple[Event, int, bool]],
    known_ns: float,
    of: Callable[[Event], int],
) -> dict[int, float]:
    """Returns, for steps and waits, the ratio of the time of the unrecorded events to the time of the events that
    represent them. The time of all unrecorded events is `known_ns`.
    """
    steps, waits = (_unseen(counted, kind, of) for kind in (events.STEP, events.WAIT))
    of_steps = _of_steps(loop_events, known_ns, steps, waits, of)
    return {events.STEP: of_steps / max(steps.ns, 1), events.WAIT: (known_ns - of_steps) / max(waits.ns, 1)}


def _unseen(counted: Iterable[tuple[Event, int, bool]], kind: int, of: Callable[[Event], int]) -> _Unseen:
    alike = [(times - is_seen, of(event)) for event, times, is_seen in counted if event.kind == kind]
    return _Unseen(sum(times for times, _ in alike), sum(times * ns for times, ns in alike))


def _of_steps(
    loop_events: Sequence[Event], between_ns: float, steps: _Unseen, waits: _Unseen, of: Callable[[Event], int]
) -> float:
    """Returns the time, or CPU time, of the unrecorded steps, given the total for unrecorded steps and waits.

    The difference from the recorded times is attributed mostly to the more variable kind: given the sum of two
    independent draws, the best estimate adjusts each in proportion to its variance.
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
    """Returns the variance of the recorded steps or waits. Excludes a loop's first step, which includes one-time work,
    and the waits for the first batch in each epoch. None if there are too few events.
    """
    pairs = pairwise(loop_events)
    seen = [of(event) for before, event in pairs if event.kind == kind and before.kind != events.ITER]
    seen = seen[1 if kind == events.STEP else 0 :]
    return statistics.variance(seen) if len(seen) >= _ENOUGH else None


def _counted(loop_events: Iterable[Event]) -> Iterator[tuple[Event, int, bool]]:
    """Yields (event, number of events that the event represents, whether this number includes the event itself)."""
    step: Event | None = None
    wait: Event | None = None
    waits = 0  # unrecorded events that the next recorded one represents
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
    """Returns the time of the steps and waits that were not recorded."""
    between = 0
    for before, event in pairwise(loop_events):
        unseen = event.b > 1 if event.kind == events.STEP else event.kind == events.LAST and event.b > 0
        if unseen and before.kind == events.WAIT:
            between += max(event.begin_ns - before.end_ns, 0)
    return between


def loops_of(processes: Iterable[ProcessRecord]) -> list[LoopOfLoader]:
    """Returns the longest loop of each process that has a loop, in descending order of length.

    If one loop alternates between several loaders, the loader that it waits for most is used.
    """
    loops = []
    for process in processes:
        loaders = {e.a for e in process.events if e.kind == events.WAIT}
        if loaders:
            loops.append(most_waited_for([LoopOfLoader(process, n) for n in loaders]))
    return sorted(loops, key=lambda loop: -loop.time_ns)


def most_waited_for(loops: Sequence[LoopOfLoader]) -> LoopOfLoader:
    """Only loops that take about as long as the longest are considered."""
    return max(_about_the_longest(loops), key=lambda loop: loop.waited_ns)


def least_waited_for(loops: Sequence[LoopOfLoader]) -> LoopOfLoader:
    """Only loops that take about as long as the longest are considered."""
    return min(_about_the_longest(loops), key=lambda loop: loop.waited_ns)


def _about_the_longest(loops: Sequence[LoopOfLoader]) -> list[LoopOfLoader]:
    longest = max(loop.time_ns for loop in loops)
    return [loop for loop in loops if loop.time_ns >= _AS_LONG * longest]


def slowest_concurrent(recording: Recording, loop: LoopOfLoader) -> LoopOfLoader:
    """If a loop alternates between loaders and waits about equally for them, returns the loader that produces batches
    most slowly.

    While the loop waits for the first loader, the other loaders' batches are produced, and any batch may be late
    because CPUs are lacking.
    """
    numbers = {event.a for event in loop.process.events if event.kind == events.WAIT}
    loops = _about_the_longest([LoopOfLoader(loop.process, number) for number in sorted(numbers)])
    waited = max(one.waited_ns for one in loops)
    alike = [one for one in loops if one.waited_ns >= _WAITED_ALIKE * waited]
    return max(alike, key=lambda one: _making_ns(recording, one)) if len(alike) > 1 else loop


def _making_ns(recording: Recording, loop: LoopOfLoader) -> float:
    """Returns the time that this loop's workers need to produce all batches of the loop in parallel."""
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
    """Returns the workers that this loader started; for spawned workers the loader is unknown, so all workers of the
    process are returned.
    """
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
    """Returns the share of waiting by rank, and whether the rank that waits most also takes longer than others to
    produce a batch.

    Ranks synchronise in every step. Even if all ranks are equally fast, the last rank waits for its batch, and the
    others wait for that rank.
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
    """Returns the mean time to produce a batch of this loop, in any process."""
    makers = workers_of(recording, loop) or [loop.process]
    tasks = [done_of(process.totals) for process in makers]
    fetches = [process.totals.get(events.FETCH, Total()) for process in makers]
    done = sum((task if task.times else fetch for task, fetch in zip(tasks, fetches, strict=True)), Total())
    return done.wall_ns / done.times if done.times else None
