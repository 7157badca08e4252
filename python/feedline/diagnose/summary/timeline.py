# SPDX-License-Identifier: Apache-2.0
"""From recorded events to a :class:`~feedline.diagnose.summary.figures.Summary`.

A wait inside ``next()`` is explained by the batch that ended it: until the worker had made that batch the loop waited
for production, after that for the hand-over.
"""

from __future__ import annotations

import bisect
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from feedline.diagnose.probe import events
from feedline.diagnose.probe.events import Event, Total
from feedline.diagnose.session import ProcessRecord, Recording
from feedline.diagnose.summary.engine_summary import making_of, samples_per_batch
from feedline.diagnose.summary.figures import Making, Summary, Waits
from feedline.diagnose.summary.gpu_summary import copies_of, device_of, gpu_of, pin_ms
from feedline.diagnose.summary.host_summary import Window, host_summary, missing_of_disk, window_of
from feedline.diagnose.summary.overhead import overhead_of

_DELAYED = 0.2
_STRAGGLES = 3.0  # times the usual time of a batch
_FEWEST_TASKS = 16
_AS_LONG = 0.7
_LARGEST_UNKNOWN = 0.1  # CPU of a worker that is in no task: up to this, its start and its sending thread
_ALIKE = 1.5  # times the time that others take to make a batch: a rank below is no slower, its turn is only later
_LARGEST_EPOCHS_START = 0.25  # a start that is paid once counts when it is more than this share


class _LoopOfLoader:
    """One process's loop over one loader."""

    def __init__(self, process: ProcessRecord, loader: int) -> None:
        self.process, self.loader = process, loader
        kinds = (events.ITER, events.WAIT, events.STEP, events.LAST)
        self.events = [e for e in process.events if e.kind in kinds and e.a == loader]
        self.time_ns = sum(e.wall_ns * (e.b if e.kind == events.STEP else 1) for e in self.events)

    @property
    def waited_ns(self) -> int:
        return sum(e.wall_ns for e in self.events if e.kind == events.WAIT)


def loops_of(processes: Iterable[ProcessRecord]) -> list[_LoopOfLoader]:
    """The loop that takes most time of each process that has any; the longest first.

    Of several loaders that one loop takes from side by side, the one that it waits for most.
    """
    loops = []
    for process in processes:
        loaders = {e.a for e in process.events if e.kind == events.WAIT}
        if loaders:
            loops.append(_most_waited_for([_LoopOfLoader(process, n) for n in loaders]))
    return sorted(loops, key=lambda loop: -loop.time_ns)


def _most_waited_for(loops: Sequence[_LoopOfLoader]) -> _LoopOfLoader:
    """Of those that take about as long as the longest."""
    longest = max(loop.time_ns for loop in loops)
    return max((loop for loop in loops if loop.time_ns >= _AS_LONG * longest), key=lambda loop: loop.waited_ns)


def summarise(recording: Recording) -> Summary | None:
    """None: no training loop was seen."""
    loops = loops_of(recording.processes)
    if not loops:
        return None
    ranks, slower = _ranks(recording, loops)
    loop = _most_waited_for(loops) if ranks and not slower else loops[0]
    facts = _facts_of(recording, loop)
    workers = _workers_of(recording, loop)
    begin, end = loop.events[0].begin_ns, loop.events[-1].end_ns
    busy = window_of(recording.host, begin, end, loop.process.pid, [p.pid for p in workers])
    makers = workers or [loop.process]
    engine = facts.get("engine") or {}
    native = making_of(facts)
    making = native or _making(loop.process, makers, busy, bool(facts.get("mapped", True)))
    aside = bool(workers) or native is not None  # batches are not made inside next()
    making = replace(making, next_cpu_ms=_next_cpu_ms(loop, making, aside))
    account = _Account(loop, makers, bool(facts.get("persistent_workers")), bool(workers))
    steps = max(account.steps, 1)
    missing = dict(busy.missing)
    if making.stages is None:
        missing["stages"] = "the samples are read by code that the probe does not know"
    if native is not None:
        missing["samples"] = "single samples of native threads are not timed"
        if engine.get("running_s") is None:
            missing["processes"] = "this kernel tells no thread's CPU time (/proc/self/task/*/schedstat)"
    calls = [e for e in loop.process.events if e.kind == events.CALLS]
    if not calls:
        missing["synchronising"] = "calls of .item() are not counted where torch.compile is in use, or without torch"
    spent, watched = sum(e.b for e in calls), sum(e.wall_ns for e in calls)
    if (busy.step_delayed() or 0.0) > _DELAYED:  # the time in calls holds no waiting for a CPU, nor may the steps'
        watched = max(sum(e.cpu_ns for e in calls), spent)
    device = device_of(recording, loop.process)
    gpu, unseen = gpu_of(recording.host, (begin, end), device, bool(facts.get("cuda") or device.get("type") == "cuda"))
    if unseen is not None:
        missing["gpu"] = unseen
    batch = facts.get("batch_size") or samples_per_batch(facts)
    host = host_summary(recording, busy, facts, int(account.steps * batch) if batch else None)
    missing |= missing_of_disk(recording, host)
    overhead = overhead_of(recording, end - begin)
    return Summary(
        steps=account.steps,
        loop_s=account.loop_ns / 1e9,
        step_ms=account.step_ns / steps / 1e6,
        wait_ms=account.steady_wait_ns / max(account.steady_waits, 1) / 1e6,
        epochs=account.epochs,
        workers=int(engine.get("threads") or facts.get("threads_gathering", facts.get("num_workers")) or 0),
        loader=facts,
        waits=account.waits(),
        making=making,
        host=host,
        step_cpu_ms=account.step_cpu_ns / steps / 1e6,
        synchronising_calls=sum(e.a for e in calls) / len(calls) if calls else None,
        synchronising=spent / watched if watched else None,
        watched_steps=len(calls),
        copies=copies_of(loop.process),
        device=device,
        gpu=gpu,
        ranks=ranks,
        ranks_alike=bool(ranks) and not slower,
        missing=missing,
        rungs=_rungs(recording, facts),
        overhead_share=overhead.share if overhead is not None else None,
        overhead=overhead.as_dict() if overhead is not None else {},
    )


def _next_cpu_ms(loop: _LoopOfLoader, making: Making, aside: bool) -> float:
    """CPU of the loop's thread in next(), beside unpacking and, where it happens there, making the batch."""
    waits = [event for event in loop.events if event.kind == events.WAIT]
    if not waits:
        return 0.0
    median = statistics.median(event.cpu_ns for event in waits) / 1e6
    return max(median - (making.unpickle_ms if aside else making.cpu_ms), 0.0)


def _facts_of(recording: Recording, loop: _LoopOfLoader) -> dict[str, Any]:
    for facts in recording.loaders:
        if facts.get("pid") == loop.process.pid and facts.get("number") == loop.loader:
            return facts
    return {}


def _rungs(recording: Recording, facts: dict[str, Any]) -> dict[int, float]:
    """Of this loader. The copy was taken when the first loop began, which may have been another's."""
    if recording.experiments is None or not is_of(recording, facts):
        return {}
    return recording.experiments.rates()


def is_of(recording: Recording, facts: Mapping[str, Any]) -> bool:
    """Whether the experiments are about the loader with these settings."""
    return bool(facts.get("copied")) or not any(loader.get("copied") for loader in recording.loaders)


def _workers_of(recording: Recording, loop: _LoopOfLoader) -> list[ProcessRecord]:
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


def _ranks(recording: Recording, loops: Sequence[_LoopOfLoader]) -> tuple[tuple[float, ...], bool]:
    """Share of waiting by rank, and whether the one that waits most also takes longer than others to make a batch.

    Ranks meet in every step. Of equal ones too, one comes last and waits for its batch, and the others for it.
    """
    by_rank: dict[int, tuple[float, float | None]] = {}
    for loop in loops:
        rank = _facts_of(recording, loop).get("rank")
        if rank is not None and str(rank).isdigit():
            by_rank[int(rank)] = (loop.waited_ns / max(loop.time_ns, 1), _made_ns(recording, loop))
    if len(by_rank) < 2:
        return (), False
    _, made = max(by_rank.values(), key=lambda waited_made: waited_made[0])
    others = sorted(m for _, m in by_rank.values() if m is not None)
    usual = others[(len(others) - 1) // 2] if others else 0.0
    slower = made is None or made > _ALIKE * usual
    return tuple(share for _, (share, _) in sorted(by_rank.items())), slower


def _made_ns(recording: Recording, loop: _LoopOfLoader) -> float | None:
    """Mean time of a batch's making, wherever the batches of this loop are made."""
    makers = _workers_of(recording, loop) or [loop.process]
    totals = [process.totals.get(events.WORK) or process.totals.get(events.FETCH) or Total() for process in makers]
    done = sum(totals, Total())
    return done.wall_ns / done.times if done.times else None


class _Account:
    """Goes through a loop's events and books every nanosecond of it."""

    def __init__(
        self, loop: _LoopOfLoader, makers: Sequence[ProcessRecord], persistent: bool, has_workers: bool
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


def _making(loop: ProcessRecord, makers: Sequence[ProcessRecord], busy: Window, may_read: bool = True) -> Making:
    """`may_read`: what waits may wait for storage."""
    delay_per_cpu = busy.delay_per_cpu()

    def sum_of(kind: int, processes: Iterable[ProcessRecord] = makers) -> Total:
        return sum((p.totals.get(kind, Total()) for p in processes), Total())

    fetch, work = sum_of(events.FETCH), sum_of(events.WORK)
    done = work if work.times else fetch
    batches = max(done.times, 1)
    delay = delay_per_cpu or 0.0
    samples = sum_of(events.SAMPLE)
    slowest = max(
        (e for p in [*makers, loop] for e in p.events if e.kind == events.SAMPLE),
        key=lambda e: e.wall_ns,
        default=None,
    )
    ready = [e.wall_ns for p in makers for e in p.events if e.kind == events.READY]
    pickled, unpickled = sum_of(events.PICKLE), sum_of(events.UNPICKLE, [loop])
    return Making(
        batches=done.times,
        wall_ms=max(done.wall_ns - delay * done.cpu_ns, done.cpu_ns) / batches / 1e6,
        cpu_ms=done.cpu_ns / batches / 1e6,
        stages=_stages(sum_of, delay, may_read, _beside_share(makers, loop, busy, done)),
        transforms=_transforms(makers, sum_of(events.DETAILED_FETCH).a),
        busy=_busy(makers, work),
        delayed=None if delay_per_cpu is None else delay / (1 + delay),
        pickle_ms=pickled.cpu_ns / batches / 1e6,
        unpickle_ms=unpickled.cpu_ns / max(unpickled.times, 1) / 1e6,
        pin_ms=pin_ms(loop),
        message_bytes=unpickled.a / max(unpickled.times, 1),
        sample_ms=samples.wall_ns / samples.times / 1e6 if samples.times else None,
        slowest_sample_ms=slowest.wall_ns / 1e6 if slowest else None,
        slowest_sample=slowest.a if slowest else None,
        nested_pools=sum_of(events.NESTED_POOL).times,
        startup_ms=statistics.median(ready) / 1e6 if ready else None,
        spread=_spread(makers),
    )


def _spread(makers: Iterable[ProcessRecord]) -> float | None:
    """Between the 16th and the 84th percentile, so that stragglers and pauses of the machine are left out."""
    tasks = [event for process in makers for event in process.events if event.kind == events.WORK]
    if len(tasks) < _FEWEST_TASKS:
        return None
    # a busy machine stretches each batch by another factor, and not its CPU time
    runs = sum(event.cpu_ns for event in tasks) > sum(event.wall_ns for event in tasks) / 4
    times = sorted(event.cpu_ns if runs else event.wall_ns for event in tasks)
    low, high = times[len(times) * 16 // 100], times[len(times) * 84 // 100]
    return (high - low) / 2 / max(statistics.fmean(times), 1)


def _busy(makers: Iterable[ProcessRecord], work: Total) -> float | None:
    """Of the time from each worker's first task to its last."""
    span = 0
    for process in makers:
        tasks = [e for e in process.events if e.kind == events.WORK]
        ready = [e.end_ns for e in process.events if e.kind == events.READY]
        if tasks and ready:
            span += tasks[-1].end_ns - ready[0]
    return min(work.wall_ns / span, 1.0) if span and work.times else None


def _beside_share(makers: Sequence[ProcessRecord], loop: ProcessRecord, busy: Window, done: Total) -> float:
    """CPU of a worker's other threads, in parts of its tasks' time: while they work, a task waits without CPU."""
    if list(makers) == [loop] or not done.wall_ns:
        return 0.0
    known = (events.WORK, events.READY, events.PICKLE)
    own = sum(e.cpu_ns for p in makers for e in p.events if e.kind == events.READY)
    own += sum(p.totals.get(kind, Total()).cpu_ns for p in makers for kind in known if kind != events.READY)
    return max(busy.workers.get("cpu_ns", 0.0) - own, 0.0) / done.wall_ns


def _stages(sum_of: Any, delay: float, may_read: bool, beside: float = 0.0) -> dict[str, float] | None:
    """Shares of a batch's making on a machine of its own: what ran, and what waited for anything but a CPU.

    `beside`: CPU of other threads that a task waited for, in parts of its time.
    """
    fetch: Total = sum_of(events.FETCH)
    if fetch.times == 0 or fetch.wall_ns == 0:
        return None
    collate: Total = sum_of(events.COLLATE)
    sample: Total = sum_of(events.SAMPLE)
    decode: Total = sum_of(events.DECODE)
    transform: Total = sum_of(events.TRANSFORM)
    timed: Total = sum_of(events.DETAILED_FETCH)
    gather: Total = sum_of(events.GATHER)
    if gather.times:  # no samples: what runs joins them
        collate = Total(gather.times, gather.cpu_ns, gather.cpu_ns)
        waiting = max(fetch.wall_ns - int((1 + delay) * gather.cpu_ns), 0) if may_read else 0
        fetch = Total(fetch.times, gather.cpu_ns + waiting, gather.cpu_ns)
    if sample.wall_ns == 0:  # the data set fetches whole batches
        part = timed.times / fetch.times if timed.times else 1.0
        wall, cpu = max(fetch.wall_ns - collate.wall_ns, 1), max(fetch.cpu_ns - collate.cpu_ns, 0)
        sample = Total(1, int(wall * part), int(cpu * part))
    scale = fetch.times / timed.times if timed.times else 1.0  # the samples of some batches were timed
    times = {
        "storage": max(sample.wall_ns - sample.cpu_ns * (1 + delay), 0.0) * scale,
        "decode": decode.cpu_ns * scale,
        "transform": transform.cpu_ns * scale,
        "python": max(sample.cpu_ns - decode.cpu_ns - transform.cpu_ns, 0) * scale,
        "collate": max(collate.wall_ns - collate.cpu_ns * delay, collate.cpu_ns),
    }
    run_beside = min(beside * fetch.wall_ns, times["storage"]) if beside > _LARGEST_UNKNOWN else 0.0
    times["storage"] -= run_beside
    times["python"] += run_beside
    whole = max(sum(times.values()), 1.0)
    return {name: time / whole for name, time in times.items()}


def _transforms(makers: Iterable[ProcessRecord], samples: int) -> dict[str, float]:
    cpu: dict[str, float] = defaultdict(float)
    for process in makers:
        for kind, name in process.names.items():
            cpu[name] += process.totals.get(kind, Total()).cpu_ns
    return {name: spent / max(samples, 1) / 1e6 for name, spent in sorted(cpu.items(), key=lambda item: -item[1])}
