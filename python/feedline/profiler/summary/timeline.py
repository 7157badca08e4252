# SPDX-License-Identifier: Apache-2.0
"""Converts a recording to a :class:`~feedline.profiler.summary.figures.Summary`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from feedline.profiler.experiments import Experiments
from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event, Total
from feedline.profiler.recordings import ProcessRecord, Recording
from feedline.profiler.summary import batch_times
from feedline.profiler.summary.batch_production import making_of_workers
from feedline.profiler.summary.engine_summary import making_of, samples_per_batch
from feedline.profiler.summary.figures import Host, Ladder, Loop, Making, OnDevice, Profiling, Ranks, Summary
from feedline.profiler.summary.garbage import garbage_of
from feedline.profiler.summary.gpu_summary import copies_of, device_of, gpu_of, steps_of
from feedline.profiler.summary.host_summary import Window, host_summary, missing_of_disk, window_of
from feedline.profiler.summary.loops import (
    LoopOfLoader,
    facts_of,
    least_waited_for,
    loops_of,
    most_waited_for,
    ranks_of,
    slowest_concurrent,
    workers_of,
)
from feedline.profiler.summary.overhead import overhead_of
from feedline.profiler.summary.sampled_waits import waited_for
from feedline.profiler.summary.wait_percentiles import wait_percentiles
from feedline.profiler.summary.waits import Account, Stretch, begun_in

__all__ = ["experiments_of", "is_of", "loops_of", "summarise"]

_DELAYED = 0.2
_MOST_DELAYED = 0.95


@dataclass(frozen=True)
class _Judged:
    """The analysed loop, and the threads or processes that produce its batches."""

    recording: Recording
    loop: LoopOfLoader
    facts: Mapping[str, Any]  # workers of its loader
    workers: Sequence[ProcessRecord]
    busy: Window
    native: Making | None  # from the engine's counters
    unseen: bool  # the makers of its batches were not recorded

    @property
    def makers(self) -> Sequence[ProcessRecord]:
        return self.workers or [self.loop.process]

    @property
    def aside(self) -> bool:
        """Whether batches are produced outside next()."""
        return bool(self.workers) or self.native is not None or self.unseen

    @property
    def times_ns(self) -> tuple[int, int]:
        return self.loop.events[0].begin_ns, self.loop.events[-1].end_ns


def summarise(recording: Recording) -> Summary | None:
    """Returns None if no training loop was recorded."""
    loops = loops_of(recording.processes)
    if not loops:
        return None
    ranks, slower = ranks_of(recording, loops)
    judged = _judged(recording, loops, bool(ranks), slower)
    loop, facts, busy = judged.loop, judged.facts, judged.busy
    making = _making(judged)
    of_loader = (bool(facts.get("persistent_workers")), bool(judged.workers), bool(facts.get("iterable")))
    account = Account(loop, judged.makers, *of_loader, _stretch(busy))
    steps = max(account.steps, 1)
    if not judged.aside:
        making = _as_waited_for(making, loop, account)
    device = device_of(recording, loop.process)
    cuda = bool(facts.get("cuda") or device.get("type") == "cuda")
    gpu, no_gpu = gpu_of(recording.host, judged.times_ns, device, cuda)
    batch = facts.get("batch_size") or samples_per_batch(facts)
    host = host_summary(recording, busy, facts, int(account.steps * batch) if batch else None)
    calls = [e for e in loop.process.events if e.kind == events.CALLS]
    begin_ns, end_ns = judged.times_ns
    overhead = overhead_of(recording, end_ns - begin_ns)
    on_device = steps_of(loop.process)
    return Summary(
        loop=Loop(
            steps=account.steps,
            loop_s=account.loop_ns / 1e9,
            step_ms=account.step_ns / steps / 1e6,
            wait_ms=account.steady_wait_ns / max(account.steady_waits, 1) / 1e6,
            wait_percentiles_ms=wait_percentiles(loop.events),
            epochs=account.epochs,
            order_ms=batch_times.order_ms(loop.events),
            step_cpu_ms=account.step_cpu_ns / steps / 1e6,
            synchronising_calls=sum(e.a for e in calls) / len(calls) if calls else None,
            synchronising=_synchronising(calls, busy),
        ),
        workers=_count_of_workers(facts),
        loader=facts,
        waits=account.waits(),
        making=making,
        host=host,
        garbage=garbage_of(loop),
        on_device=OnDevice(
            watched_steps=len(calls),
            device_step_ms=on_device[0],
            timed_steps=on_device[1],
            copies=copies_of(loop.process),
            copies_with={} if recording.experiments is None else recording.experiments.copies(),
            device=device,
            gpu=gpu,
        ),
        of_ranks=Ranks(ranks, bool(ranks) and not slower),
        ladder=_ladder(recording, facts),
        profiling=Profiling(overhead.share, overhead.as_dict()) if overhead is not None else Profiling(),
        missing=_missing(judged, making, host, bool(calls), no_gpu),
    )


def _judged(recording: Recording, loops: Sequence[LoopOfLoader], ranks: bool, slower: bool) -> _Judged:
    loop = loops[0]
    if ranks:  # the others wait for a slow rank in their steps
        loop = least_waited_for(loops) if slower else most_waited_for(loops)
    loop = slowest_concurrent(recording, loop)
    facts, workers = facts_of(recording, loop), workers_of(recording, loop)
    begin_ns, end_ns = loop.events[0].begin_ns, loop.events[-1].end_ns
    busy = window_of(recording.host, begin_ns, end_ns, loop.process.pid, [p.pid for p in workers])
    native = making_of(facts)
    unseen = native is None and not workers and _made_elsewhere(loop, facts)
    return _Judged(recording, loop, facts, workers, busy, native, unseen)


def _making(judged: _Judged) -> Making:
    """Returns metrics of batch production, which are used unless the loop's waits provide more precise values."""
    loop, facts, native = judged.loop, judged.facts, judged.native
    mapped = bool(facts.get("mapped", True))
    making = native or making_of_workers(loop.process, judged.makers, judged.busy, mapped)
    # threads make batches together
    times = () if native is not None or judged.unseen else _times(loop, judged.workers)
    making = replace(making, next_cpu_ms=_next_cpu_ms(loop, making, judged.aside), times=times)
    if native is None:
        looked = waited_for(judged.recording.waits, {p.pid for p in judged.makers})
        making = replace(making, waited_for=looked)
    return _with_handing(making, judged.recording, facts)


def _times(loop: LoopOfLoader, workers: Sequence[ProcessRecord]) -> tuple[float, ...]:
    if any(events.WORK in process.totals for process in workers):
        return batch_times.times_of_tasks(workers)
    return batch_times.times_of(loop.events)


def _as_waited_for(making: Making, loop: LoopOfLoader, account: Account) -> Making:
    """Corrects the metrics of batches produced inside next(): the loop's waits include all of them, even if only some
    were timed.

    Timed and untimed batches may both contain a sample that takes ten times as long as others.
    """
    fetched = loop.process.totals.get(events.FETCH, Total())
    if not 0 < fetched.times < account.steps or not fetched.wall_ns:
        return making
    waited_ms = (account.production + account.straggler) / account.steps / 1e6 - making.next_cpu_ms
    factor = waited_ms / (fetched.wall_ns / fetched.times / 1e6)
    if factor <= 0:
        return making
    return replace(making, wall_ms=making.wall_ms * factor, cpu_ms=making.cpu_ms * factor)


def _stretch(busy: Window) -> Stretch:
    delayed = min(busy.step_delayed() or 0.0, _MOST_DELAYED)
    return Stretch(1 / (1 - delayed), 1 + (busy.delay_per_cpu() or 0.0))


def _count_of_workers(facts: Mapping[str, Any]) -> int:
    engine = facts.get("engine") or {}
    return int(engine.get("threads") or facts.get("threads_gathering", facts.get("num_workers")) or 0)


def _made_elsewhere(loop: LoopOfLoader, facts: Mapping[str, Any]) -> bool:
    """Whether a loader with workers produces no batches in the loop's process, unlike a loader that uses threads."""
    return not facts.get("native") and _count_of_workers(facts) > 0 and events.FETCH not in loop.process.totals


def _missing(judged: _Judged, making: Making, host: Host, called: bool, no_gpu: str | None) -> dict[str, str]:
    """Returns missing signals with reasons. `called`: whether steps were watched."""
    recording, loop = judged.recording, judged.loop
    missing = {**judged.busy.missing, **_missing_of_making(judged, making), **missing_of_disk(recording, host)}
    if not called:
        missing["synchronising"] = "calls to .item() are not counted with torch.compile, or without torch"
    if recording.dropped:
        missing["recording"] = f"the events of {recording.dropped} processes that exited early"
    if any(event.thread != loop.process.pid for event in loop.events):
        missing["consumer"] = (
            "the code that receives batches from the thread that calls next(), and that may not wait for them"
        )
    if no_gpu is not None:
        missing["gpu"] = no_gpu
    return missing


def _missing_of_making(judged: _Judged, making: Making) -> dict[str, str]:
    missing, engine = {}, judged.facts.get("engine")
    if judged.unseen:
        missing["workers"] = "none of the loader's workers was recorded"
    if making.stages is None:
        missing["stages"] = "the samples are read by code that the probe does not know"
    if engine:
        missing["samples"] = "single samples are not timed in native threads"
        if engine.get("running_s") is None:
            missing["processes"] = "this kernel does not report threads' CPU time (/proc/self/task/*/schedstat)"
    return missing


def _synchronising(calls: Sequence[Event], busy: Window) -> float | None:
    """Returns the share of the watched steps' time that is spent in the counted calls.

    Excludes the first step if there are other steps, because the first step includes torch's one-time work.
    """
    calls = calls[1:] or calls
    spent, watched = sum(e.b for e in calls), sum(e.wall_ns for e in calls)
    if (busy.step_delayed() or 0.0) > _DELAYED:  # the time in calls excludes waiting for a CPU, so the steps' must too
        watched = max(sum(e.cpu_ns for e in calls), spent)
    return spent / watched if watched else None


def _next_cpu_ms(loop: LoopOfLoader, making: Making, aside: bool) -> float:
    """Returns the CPU time of the loop's thread in next(), excluding unpacking and, if it happens there, the production
    of the batch.
    """
    waits = [event for event in loop.events if event.kind == events.WAIT]
    if not waits:
        return 0.0
    unpacked = sorted((e for e in loop.process.events if e.kind == events.UNPICKLE), key=lambda event: event.begin_ns)
    if unpacked:  # some calls unpack several batches, others none
        return statistics.median(w.cpu_ns - sum(e.cpu_ns for e in begun_in(w, unpacked)) for w in waits) / 1e6
    median = statistics.median(event.cpu_ns for event in waits) / 1e6
    return max(median - (making.unpickle_ms if aside else making.cpu_ms), 0.0)


def _with_handing(making: Making, recording: Recording, facts: Mapping[str, Any]) -> Making:
    handing = recording.experiments.handing if recording.experiments is not None else None
    if handing is None or not is_of(recording, facts):
        return making
    return replace(making, sent_ms=handing.packing_ms, received_ms=handing.unpacking_ms, exchange_ms=handing.waiting_ms)


def experiments_of(recording: Recording, facts: Mapping[str, Any]) -> Experiments | None:
    """Returns the measurements for this loader, including those of its files if the run read files.

    The process was copied when its first loop began, and that loop may have used a different loader.
    """
    tried = recording.experiments
    return tried if tried is not None and tried.warm_because is None and is_of(recording, facts) else None


def _ladder(recording: Recording, facts: Mapping[str, Any]) -> Ladder:
    tried = experiments_of(recording, facts)
    if tried is None:
        return Ladder()
    return Ladder(
        rungs=tried.rates(),
        rung_intervals=tried.rate_intervals(),
        rungs_over_fewer=tried.gain_over_fewer(_count_of_workers(facts)),
        tried={one.change: (one.ratio, one.ratio_low, one.ratio_high) for one in tried.comparisons},
    )


def is_of(recording: Recording, facts: Mapping[str, Any]) -> bool:
    """Whether the experiments used a loader with these settings."""
    return bool(facts.get("copied")) or not any(loader.get("copied") for loader in recording.loaders)
