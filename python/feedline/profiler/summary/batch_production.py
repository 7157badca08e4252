# SPDX-License-Identifier: Apache-2.0
"""Metrics of batch production: the times of the stages if a CPU were always free."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Total
from feedline.profiler.recordings import ProcessRecord
from feedline.profiler.summary.figures import Making
from feedline.profiler.summary.gpu_summary import pin_ms
from feedline.profiler.summary.host_summary import Window
from feedline.profiler.summary.tasks import RECORDED, done_of

_FEWEST_TASKS = 16
_LEAST_PARALLEL = 0.02  # minimum CPU of threads that do more than the task itself: a busy machine leaves little to both
_LARGEST_UNKNOWN = 0.1  # CPU of a worker without a task: up to this, its start and its sending thread


def making_of_workers(
    loop: ProcessRecord, makers: Sequence[ProcessRecord], busy: Window, may_read: bool = True
) -> Making:
    """`may_read`: whether storage may be the reason for waits."""
    delay_per_cpu = busy.delay_per_cpu()

    def sum_of(kind: int, processes: Iterable[ProcessRecord] = makers) -> Total:
        return sum((p.totals.get(kind, Total()) for p in processes), Total())

    fetch, seen = sum_of(events.FETCH), sum_of(events.WORK)
    work = sum((done_of(process.totals) for process in makers), Total())
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
    made = [done_of(p.totals).times for p in makers if events.WORK in p.totals]
    pickled, unpickled = sum_of(events.PICKLE), sum_of(events.UNPICKLE, [loop])
    pools = sum_of(events.NESTED_POOL)
    packing = pickled.cpu_ns / max(seen.times or done.times, 1)
    return Making(
        batches=done.times,
        wall_ms=max(done.wall_ns - delay * done.cpu_ns, done.cpu_ns) / batches / 1e6,
        cpu_ms=done.cpu_ns / batches / 1e6,
        stages=stages_of(sum_of, delay, may_read, _parallel_share(makers, loop, busy, done, packing)),
        transforms=_transforms(makers, sum_of(events.DETAILED_FETCH).a),
        busy=_busy(makers, work),
        delayed=None if delay_per_cpu is None else delay / (1 + delay),
        pickle_ms=packing / 1e6,
        unpickle_ms=unpickled.cpu_ns / max(unpickled.times, 1) / 1e6,
        pin_ms=pin_ms(loop),
        message_bytes=unpickled.a / max(unpickled.times, 1),
        sample_ms=samples.wall_ns / samples.times / 1e6 if samples.times else None,
        slowest_sample_ms=slowest.wall_ns / 1e6 if slowest else None,
        slowest_sample=slowest.a if slowest else None,
        fewest=min(made, default=None),
        most=max(made, default=None),
        nested_pools=pools.times,
        collating_pools=_collating(pools),
        pools_ms=pools.cpu_ns / batches / 1e6,
        startup_ms=statistics.median(ready) / 1e6 if ready else None,
        spread=_spread(makers),
    )


def _spread(makers: Iterable[ProcessRecord]) -> float | None:
    """Returns half the distance between the 16th and the 84th percentile, relative to the mean, to exclude stragglers
    and pauses of the machine.
    """
    tasks = [event for process in makers for event in process.events if event.kind == events.WORK]
    if len(tasks) < _FEWEST_TASKS:
        return None
    # a busy machine slows each batch by a different factor, but does not change its CPU time
    runs = sum(event.cpu_ns for event in tasks) > sum(event.wall_ns for event in tasks) / 4
    times = sorted(event.cpu_ns if runs else event.wall_ns for event in tasks)
    low, high = times[len(times) * 16 // 100], times[len(times) * 84 // 100]
    return (high - low) / 2 / max(statistics.fmean(times), 1)


def _collating(pools: Total) -> float:
    """Returns the share of pools that were created by `collate_fn`, of those whose place is known."""
    collation, samples = divmod(pools.a, events.OF_COLLATION)
    return collation / max(collation + samples, 1)


def _busy(makers: Iterable[ProcessRecord], work: Total) -> float | None:
    """Returns the fraction of time that the workers are busy, from each worker's first task to its last."""
    span = 0
    for process in makers:
        tasks = [e for e in process.events if e.kind in RECORDED]
        ready = [e.end_ns for e in process.events if e.kind == events.READY]
        if tasks and ready:
            span += tasks[-1].end_ns - ready[0]
    return min(work.wall_ns / span, 1.0) if span and work.times else None


def _parallel_share(
    makers: Sequence[ProcessRecord], loop: ProcessRecord, busy: Window, done: Total, packing_ns: float
) -> float:
    """Returns the CPU time of a worker's other threads relative to the time of its tasks. While these threads run, a
    task waits and uses no CPU time.

    `packing_ns`: CPU time per batch of the thread that packs batches.
    """
    if list(makers) == [loop] or not done.wall_ns:
        return 0.0
    ready = sum(e.cpu_ns for p in makers for e in p.events if e.kind == events.READY)
    tasks = sum(done_of(process.totals).cpu_ns for process in makers)
    own = ready + tasks + done.times * packing_ns
    return max(busy.workers.get("cpu_ns", 0.0) - own, 0.0) / done.wall_ns


def stages_of(sum_of: Any, delay: float, may_read: bool, other_cpu: float = 0.0) -> dict[str, float] | None:
    """Returns the shares of batch production on an idle machine: CPU time of each stage, and waiting for anything but a
    CPU.

    `other_cpu`: CPU time of other threads that a task waited for, divided by the task's time.
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
    if gather.times:  # no samples: running counts as collation
        collate = Total(gather.times, gather.cpu_ns, gather.cpu_ns)
        waiting = max(fetch.wall_ns - int((1 + delay) * gather.cpu_ns), 0) if may_read else 0
        fetch = Total(fetch.times, gather.cpu_ns + waiting, gather.cpu_ns)
    if sample.wall_ns == 0:  # the dataset fetches whole batches
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
    if other_cpu > _LARGEST_UNKNOWN or other_cpu > max(fetch.cpu_ns / fetch.wall_ns, _LEAST_PARALLEL):
        # these threads wait for CPUs as the worker does, and the worker waits for them
        stretched = min((1 + delay) * other_cpu * fetch.wall_ns, times["storage"])
        times["storage"] -= stretched
        times["python"] += stretched / (1 + delay)
    whole = max(sum(times.values()), 1.0)
    return {name: time / whole for name, time in times.items()}


def _transforms(makers: Iterable[ProcessRecord], samples: int) -> dict[str, float]:
    cpu: dict[str, float] = defaultdict(float)
    for process in makers:
        for kind, name in process.names.items():
            cpu[name] += process.totals.get(kind, Total()).cpu_ns
    return {name: spent / max(samples, 1) / 1e6 for name, spent in sorted(cpu.items(), key=lambda item: -item[1])}
