# SPDX-License-Identifier: Apache-2.0
"""Predicts the gain of a different number of workers from measured times; loop_model.py contains the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from feedline.profiler.intervals import GAIN, Figure, Shown, gain_over_fewer, shown
from feedline.profiler.model import loop_model
from feedline.profiler.model.loop_model import Batch
from feedline.profiler.summary.figures import Host, Making, Summary

# Interval of a prediction: in worker searches, the error of five of six trials was within it, equally often in both
# directions.
LONGER, SHORTER = 1.15, 1 / 1.15
_MOST_WORKERS = 64
_REACH = 4  # multiple of the current number of workers: the model was not validated beyond this
_CLEARLY, _CLEARLY_MEASURED = 0.95, 0.9
_PREFETCH = 2  # torch's default
_PRESSED = 0.05
_FULL, _FROM_DEVICE = 0.7, 0.3  # fractions: of the disk probe's throughput; of the bytes read


def batch_of(summary: Summary) -> Batch:
    """Returns the costs of a batch in this run."""
    making = summary.making
    waiting, disk = _waiting(summary), 0.0
    cpu = max(making.wall_ms - waiting, 0.0)
    if disk_is_full(summary.host):  # the present workers wait for each other's reads
        waiting = disk = waiting / max(summary.workers, 1)
    packing, unpacking, exchange = _handing(making)
    return Batch(
        waiting=waiting,
        ahead=min(making.read_ahead_ms, waiting),
        disk=disk,
        cpu=cpu,
        packing=packing,
        unpacking=unpacking,
        exchange=exchange,
        drawing=making.next_cpu_ms,
        step=summary.loop.step_ms,
        step_cpu=min(summary.loop.step_cpu_ms, summary.loop.step_ms),
        spread=making.spread or 0.0,
        times=making.times,
        order=max(_order_ms(summary), _starting_ms(summary)),  # both times begin with iter()
        epoch=round(summary.loop.steps / summary.loop.epochs) if summary.loop.epochs > 1 else 0,
    )


def _waiting(summary: Summary) -> float:
    """Returns the time that threads wait for storage per batch, excluding the CPU time of the dataset's own threads and
    processes.
    """
    making = summary.making
    waiting = max(making.wall_ms - making.cpu_ms, 0.0)
    if making.stages is None or summary.native:
        return waiting
    waiting = min(waiting, making.stages.get("storage", 0.0) * making.wall_ms)
    if not making.nested_pools or summary.host.used_cpus is None:
        return waiting
    known = (
        making.wall_ms - waiting + making.pickle_ms + making.unpickle_ms + making.next_cpu_ms + summary.loop.step_cpu_ms
    )
    return max(waiting - max(summary.host.used_cpus * current_ms(summary) - known, 0.0), 0.0)


def disk_is_full(host: Host) -> bool:
    """Whether the run read about as fast as the disk probe did, so that its workers wait for each other's reads."""
    read, ceiling = host.read_bytes_per_s, host.disk_ceiling_bytes_per_s
    from_device = (host.device_share or 0.0) > _FROM_DEVICE
    return from_device and read is not None and bool(ceiling) and read > _FULL * (ceiling or 0.0)


def memory_is_short(host: Host) -> bool:
    """Whether the run is at its container's memory limit. The model ignores the additional memory that more workers
    need.
    """
    return bool(host.memory_events) and (host.memory_pressure or 0.0) >= _PRESSED


def _handing(making: Making) -> tuple[float, float, float]:
    """Returns (packing, unpacking, waiting while unpacking) of one batch: the values from the run or the experiments,
    whichever are larger.
    """
    packing, unpacking = (
        max(making.pickle_ms, making.sent_ms or 0.0),
        max(making.unpickle_ms, making.received_ms or 0.0),
    )
    return packing, unpacking, making.exchange_ms or 0.0


def _order_ms(summary: Summary) -> float:
    """Returns the cost of starting an epoch, excluding production of its first batch, which the model includes
    separately.
    """
    if not summary.native or summary.loop.epochs < 2:
        return summary.loop.order_ms
    # the engine's threads start an epoch outside the CPU clock of the loop's thread
    began = 1000 * summary.waits.border * summary.loop.loop_s / (summary.loop.epochs - 1)
    return max(began - max(summary.making.wall_ms - summary.loop.wait_ms, 0.0), summary.loop.order_ms)


def _starting_ms(summary: Summary) -> float:
    """Returns the cost of starting workers in each epoch; 0 for persistent workers."""
    return 1000 * summary.waits.startup * summary.loop.loop_s / summary.loop.epochs if summary.loop.epochs > 1 else 0.0


def prefetch_of(summary: Summary) -> int:
    return int(summary.loader.get("prefetch_factor") or _PREFETCH)


def cycle_ms(summary: Summary, workers: int, cpus: float | None = None) -> float:
    """Returns the loop's predicted time per batch, including the starts of epochs. Uses the loader's measured rate if a
    trial measured it.
    """
    batch, available = batch_of(summary), cpus or summary.host.cpus
    order, starting = _order_ms(summary), _starting_ms(summary) if workers else 0.0
    measured, modelled = summary.ladder.rungs.get(workers), loader_rate(summary, workers)
    if measured and modelled:
        batch, order = with_loader_taking(batch, modelled / measured), order * modelled / measured
    batch = replace(batch, order=max(order, starting))
    return loop_model.cycle_ms(batch, workers, available, prefetch_of(summary), summary.workers)


def with_loader_taking(batch: Batch, factor: float) -> Batch:
    """Returns the costs with all of the loader's work scaled by `factor`. The step's cost is unchanged."""
    return replace(
        batch.taking(factor),
        exchange=batch.exchange * factor,
        drawing=batch.drawing * factor,
        order=batch.order * factor,
    )


def loader_rate(summary: Summary, workers: int) -> float | None:
    """Returns the loader's predicted batches per second without the loop, which is the rate that a trial measures."""
    alone = replace(batch_of(summary), step=0.0, step_cpu=0.0, order=_order_ms(summary))  # a trial has persistent
    # workers
    if summary.native:  # at least one thread, which does not wait for the loop
        workers = max(workers, 1)
    ms = loop_model.cycle_ms(alone, workers, summary.host.cpus, prefetch_of(summary), summary.workers)
    return 1000 / ms if ms > 0 else None


def current_ms(summary: Summary) -> float:
    """Returns the measured time per batch, which includes an equal part of the time between epochs."""
    return 1000 * summary.loop.loop_s / max(summary.loop.steps, 1)


def gain(summary: Summary, cycle: float) -> tuple[float, float]:
    """Returns (low, high), the relative increase in batches per second if a batch takes `cycle` ms.

    The gain is relative to the model's result for the current settings, so that a busy machine affects both times.
    """
    now = cycle_ms(summary, summary.workers)
    if cycle <= 0 or now <= 0:
        return 0.0, 0.0
    return max(now / (cycle * LONGER) - 1, 0.0), max(now / (cycle * SHORTER) - 1, 0.0)


def gain_of_share(share: float, least: float = 0.5) -> tuple[float, float]:
    """Returns lower and upper bounds on the gain from removing between `least * share` and `share` of the time."""
    share = min(max(share, 0.0), 0.99)
    return least * share / (1 - least * share), share / (1 - share)


def within_reach(summary: Summary) -> range:
    """Returns the numbers of workers, from the current one up, for which predictions from this run are valid."""
    present = max(summary.workers, 1)
    if memory_is_short(summary.host):
        return range(present, max([present, *summary.ladder.rungs]) + 1)
    return range(present, _REACH * present + 1)


def best_workers(summary: Summary, candidates: Iterable[int] | None = None) -> int:
    """Returns the smallest number of workers that no larger number clearly beats, among the measured numbers if there
    are any.
    """
    numbers = sorted(candidates or range(1, _MOST_WORKERS + 1))
    if (
        summary.ladder.rungs and summary.workers not in summary.ladder.rungs
    ):  # the number to compare with was not measured
        summary = without_rungs(summary)
    measured = [workers for workers in numbers if workers in summary.ladder.rungs]
    clearly = _CLEARLY_MEASURED if measured else _CLEARLY
    best, *larger = measured or numbers
    for workers in larger:
        if cycle_ms(summary, workers) < clearly * cycle_ms(summary, best) and is_shown(summary, workers, best):
            best = workers
    return best


def is_shown(summary: Summary, workers: int, other: int) -> bool:
    """Whether trials show that `workers` is faster than `other`; also True if either number was not measured."""
    if workers not in summary.ladder.rungs or other not in summary.ladder.rungs:
        return True
    return shown(_rung(summary, workers), _rung(summary, other)) is Shown.BETTER


def _rung(summary: Summary, workers: int) -> Figure:
    rate = summary.ladder.rungs[workers]
    return (rate, *summary.ladder.rung_intervals.get(workers, (rate, rate)))


def advised_workers(summary: Summary, candidates: Iterable[int] | None = None) -> int | None:
    """Returns the recommended number of workers above the current one, or None.

    If trials show that a number is better and no smaller number is equally fast, returns that number. Otherwise returns
    the model's best number, excluding numbers that trials show to be no better.
    """
    present, numbers = summary.workers, set(candidates or range(1, _MOST_WORKERS + 1))
    best_known, found = at_its_best(summary), _gain_over_fewer(summary)
    if present in best_known.ladder.rungs:
        best = measured_above(summary, numbers)
        if best is not None or fewer_workers(summary) is not None:
            return best
    left = {n for n in numbers if n >= present and _nearest(found, present, n) != Shown.NOT_BETTER.value}
    best = best_workers(without_rungs(summary), left) if left else present
    if best <= present or _is_no_gain(best_known, best):
        return None
    known = comparable(summary)  # the present number's measured rate may exceed the model's
    return best if cycle_ms(known, best) < _CLEARLY * cycle_ms(known, present) else None


def measured_above(summary: Summary, numbers: Iterable[int]) -> int | None:
    """Returns the number from `numbers`, above the current one, that trials show to be better than the current number
    and all smaller ones.

    Requires a trial of the current number, or an upper bound on its rate.
    """
    known, found, present = at_its_best(summary), _gain_over_fewer(summary), summary.workers
    above = {n for n in numbers if n > present and found.get(n) != Shown.NOT_BETTER.value}
    best = best_workers(known, {present, *above})
    fewer = fewer_workers(summary)
    if fewer is not None:
        best = best_workers(known, {fewer, best})
    return best if best > present else None


def _gain_over_fewer(summary: Summary) -> Mapping[int, str]:
    """Returns, by number of workers, how each trial compares with the best trial with fewer workers."""
    if summary.ladder.rungs_over_fewer:
        return summary.ladder.rungs_over_fewer
    figures = {workers: _rung(summary, workers) for workers in summary.ladder.rungs}
    return {workers: one.value for workers, one in gain_over_fewer(figures).items()}


def some_are_better(summary: Summary) -> bool:
    """Whether trials show that a larger number of workers is faster than the current number and all smaller ones."""
    return any(n > summary.workers and one == Shown.BETTER.value for n, one in _gain_over_fewer(summary).items())


def _is_no_gain(summary: Summary, workers: int) -> bool:
    """Whether this number of workers was measured and its rate is not clearly above the current number's rate or upper
    bound.
    """
    rungs = summary.ladder.rungs
    return workers in rungs and summary.workers in rungs and rungs[workers] < GAIN * rungs[summary.workers]


def _nearest(found: Mapping[int, str], present: int, workers: int) -> str | None:
    """Returns the result for the largest measured number above the current one and up to `workers`, or else for the
    next larger measured number.

    None if neither number was measured. Without workers, a larger number is not used, because it does not predict the
    effect of the first worker, which adds a process.
    """
    measured = [n for n in found if n > present]
    below = [n for n in measured if n <= workers]
    if below:
        return found[max(below)]
    return found[min(measured)] if measured and present > 0 else None


def at_its_best(summary: Summary) -> Summary:
    """Returns a summary in which the rate of the current number of workers is its upper bound if its trial is
    uncertain. Numbers of workers with rates above that bound are better.
    """
    interval = summary.ladder.rung_intervals.get(summary.workers)
    if summary.workers in summary.ladder.rungs or interval is None or interval[1] <= 0:
        return summary
    high = interval[1]
    rungs = {**summary.ladder.rungs, summary.workers: high}
    intervals = {**summary.ladder.rung_intervals, summary.workers: (high, high)}
    return replace(summary, ladder=replace(summary.ladder, rungs=rungs, rung_intervals=intervals))


def without_rungs(summary: Summary) -> Summary:
    """Returns the summary without the measured rates of all trials."""
    return replace(summary, ladder=replace(summary.ladder, rungs={}))


def comparable(summary: Summary) -> Summary:
    """Returns a summary with trials only if they include the rate of the current number or its upper bound, since a
    single rate does not show a gain.
    """
    known = at_its_best(summary)
    return known if known.workers in known.ladder.rungs else without_rungs(summary)


def comparable_with(summary: Summary, workers: int) -> Summary:
    """Like comparable(), but without trials if they do not include the rate of `workers`, since a measured rate and the
    model's rate of another number do not show a gain.
    """
    known = comparable(summary)
    return known if workers in known.ladder.rungs else without_rungs(known)


def fewer_workers(summary: Summary) -> int | None:
    """Returns the smallest number of workers below the current one that trials show to make the loop clearly faster."""
    summary = at_its_best(summary)
    if summary.workers not in summary.ladder.rungs:
        return None
    best, least = None, _CLEARLY_MEASURED * cycle_ms(summary, summary.workers)
    for workers in sorted(n for n in summary.ladder.rungs if n < summary.workers):
        cycle = cycle_ms(summary, workers)
        if cycle < least and is_shown(summary, workers, summary.workers):
            best, least = workers, _CLEARLY * cycle
    return best
