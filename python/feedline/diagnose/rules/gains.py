# SPDX-License-Identifier: Apache-2.0
"""The predicted gain of a verdict: the time saved by removing a cause, with everything else unchanged.

A cause's share of the time differs from the time that its removal saves. Batches are produced concurrently with the
loop, so the next-slowest part then limits the rate: the step, another stage, or the CPUs. Therefore the remaining time
per batch comes from the model if the model includes the cause, and from the share only if the loop itself was blocked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from feedline.diagnose.rules.cause import Gain
from feedline.profiler.model import loop_model, prediction, what_if
from feedline.profiler.model.loop_model import Batch
from feedline.profiler.summary.figures import Summary

_AGAIN = 1.1  # variation of the same script's cycles between runs
_ONE_START = 0.25  # share of the time: with one epoch, a shorter start is not counted; the rest is workers that pause
_FROM_DEVICE = 0.3  # share of the bytes read
_MUCH_FASTER = 3.0
_LEFT_OVER = 0.05  # share of a batch's production
_WARM = 0.5  # share of the hand-over's CPU time: 0.3 to 0.7 in test loops whose batches follow each other closely
_SHORTEST = 0.01  # share of a cycle: unexplained time remains even if all explained time is removed


def of_share(summary: Summary, share: float) -> Gain:
    """Returns the gain if the loop is no longer blocked for this share of its time, which was measured rather than
    modelled.
    """
    return _of_rest(1.0 - share / (1.0 - first_start(summary)), _AGAIN, 1 / _AGAIN)


def without_stages(summary: Summary, *gone: str) -> Gain:
    """Returns the gain if these stages are removed; for "storage", only the time spent waiting for files is removed."""
    batch, stages = prediction.batch_of(summary), summary.making.stages or {}
    running = sum(part for name, part in stages.items() if name != "storage")
    remaining = 1.0 - sum(stages.get(name, 0.0) for name in gone if name != "storage") / max(running, 1e-9)
    lighter = replace(batch, cpu=batch.cpu * remaining)
    return of_reads(summary, lighter) if "storage" in gone else of_batch(summary, lighter)


def stages(*gone: str) -> Callable[[Summary, float], Gain]:
    """Returns :func:`without_stages` as the `gain` of a cause."""
    return lambda summary, _share: without_stages(summary, *gone)


def in_files(summary: Summary, unseen: float) -> float:
    """Returns the share of waiting time that is spent on files, or `unseen` if it was not observed."""
    seen = summary.making.waited_for
    return unseen if seen is None else seen.in_files


def of_reads(summary: Summary, batch: Batch) -> Gain:
    """Returns the gain if batches with this cost do not wait for storage.

    Reading cached bytes costs the kernel less CPU time than reading from a device. Kernel time includes other work, so
    the lower bound assumes that all of it remains, and the upper bound that all of it disappears.
    """
    host, ready = summary.host, what_if.without(summary, batch, 1.0 - in_files(summary, 1.0), 1.0)
    low, high = of_batch(summary, ready)
    if (host.device_share or 0.0) < _FROM_DEVICE or host.memory_events:
        return low, high
    return low, of_batch(summary, without_kernel(summary, ready))[1]


def of_batch(summary: Summary, changed: Batch, cpus: float | None = None) -> Gain:
    """Returns the gain if a batch has this cost, or if this many CPUs are available.

    Waits in the measured loop that are unrelated to batches remain. If the loop becomes several times as fast, its work
    per batch also becomes cheaper, because the data is still in the CPU's caches, and small unexplained waits may
    vanish. The size of this effect cannot be predicted, so it only raises the upper bound.
    """
    available, prefetch = summary.host.cpus, prediction.prefetch_of(summary)
    workers = max(summary.workers, 1) if summary.native else summary.workers

    def cycle_ms(batch: Batch, cpus: float) -> float:
        return loop_model.cycle_ms(batch, workers, cpus, prefetch, workers)

    measured = prediction.batch_of(summary)
    now = cycle_ms(measured, available)
    then = min(cycle_ms(changed, cpus or available), now)
    quickest = then
    if then < now / _MUCH_FASTER:
        quickest = min(cycle_ms(_at_best(changed, measured), cpus or available), then)
    waits, first, current = summary.waits, first_start(summary), prediction.current_ms(summary)
    other_waits = current * (waits.startup - first + waits.border + waits.straggler) / (1.0 - first)
    stays = min(other_waits, max(current - now, 0.0))
    low, high = (_of_rest((stays + one) / max(stays + now, 1e-9)) for one in (then, quickest))
    return low[0], high[1]


def _at_best(batch: Batch, measured: Batch) -> Batch:
    waiting = batch.waiting if measured.waiting > _LEFT_OVER * measured.made else 0.0
    return replace(
        batch,
        waiting=waiting,
        ahead=min(batch.ahead, waiting),
        packing=batch.packing * _WARM,
        unpacking=batch.unpacking * _WARM,
        drawing=batch.drawing * _WARM,
    )


def without_kernel(summary: Summary, batch: Batch) -> Batch:
    return replace(batch, cpu=batch.cpu * (1.0 - (summary.host.in_kernel or 0.0)))


def without_waiting(summary: Summary, batch: Batch) -> Batch:
    return what_if.without(summary, batch, waiting=0.0, decoding=1.0)


def first_start(summary: Summary) -> float:
    """Returns the share of the time spent on the workers' first start, which is excluded from the steps per second."""
    startup = summary.waits.startup
    if summary.loop.epochs < 2 and startup <= _ONE_START:
        return 0.0
    return min(startup / max(summary.loop.epochs, 1), 1.0 - _SHORTEST)


def _of_rest(rest: float, longer: float = prediction.LONGER, shorter: float = prediction.SHORTER) -> Gain:
    """Returns the gain if this share of the time per batch remains; the factors widen the interval."""
    rest = max(rest, _SHORTEST)
    return max(1 / (rest * longer) - 1, 0.0), max(1 / (rest * shorter) - 1, 0.0)
