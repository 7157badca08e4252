# SPDX-License-Identifier: Apache-2.0
"""What it would gain if a cause were gone altogether and all else stayed: what a verdict promises.

A cause's share of the time is not what its going gives back. Batches are made beside the loop, so what takes its place
as the slowest part sets the pace then: the step, another stage, or the CPUs. So what is left of a cycle comes from the
model wherever the cause is a part of it, and from the share only where the loop itself stood still meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from feedline.diagnose.judging.cause import Gain
from feedline.watching.model import loop_model, prediction, what_if
from feedline.watching.model.loop_model import Batch
from feedline.watching.summary.figures import Summary

_AGAIN = 1.1  # what the same script's cycles differ by, from run to run
_ONE_START = 0.25  # of the time: of one epoch a shorter start is not counted, and what is are workers that stop
_FROM_DEVICE = 0.3  # of what is read
_MUCH_FASTER = 3.0
_LEFT_OVER = 0.05  # of a batch's making
_WARM = 0.5  # of the CPU of handing over: in planted loops 0.3 to 0.7 of it, where batches follow each other closely
_SHORTEST = 0.01  # of a cycle: what no share explains is not gone with all that are


def of_share(summary: Summary, share: float) -> Gain:
    """The loop stood still for this share of its time, and now goes on. It was measured, and not modelled."""
    return _of_rest(1.0 - share / (1.0 - first_start(summary)), _AGAIN, 1 / _AGAIN)


def without_stages(summary: Summary, *gone: str) -> Gain:
    """Batches are made without these of their stages; of "storage" goes what was waited for in files."""
    batch, stages = prediction.batch_of(summary), summary.making.stages or {}
    running = sum(part for name, part in stages.items() if name != "storage")
    kept = 1.0 - sum(stages.get(name, 0.0) for name in gone if name != "storage") / max(running, 1e-9)
    lighter = replace(batch, cpu=batch.cpu * kept)
    return of_reads(summary, lighter) if "storage" in gone else of_batch(summary, lighter)


def stages(*gone: str) -> Callable[[Summary, float], Gain]:
    """:func:`without_stages`, as a cause has its gain."""
    return lambda summary, _share: without_stages(summary, *gone)


def in_files(summary: Summary, unseen: float) -> float:
    """Of the waiting, what was for files; `unseen`: where nobody looked."""
    seen = summary.making.waited_for
    return unseen if seen is None else seen.in_files


def of_reads(summary: Summary, batch: Batch) -> Gain:
    """Batches that cost this wait for no storage.

    A read that finds its bytes in memory takes the kernel less than one from a device: of the kernel's part of the CPU,
    which holds other work too, nothing goes at the low end, and all of it at the high one.
    """
    host, ready = summary.host, what_if.without(summary, batch, 1.0 - in_files(summary, 1.0), 1.0)
    low, high = of_batch(summary, ready)
    if (host.device_share or 0.0) < _FROM_DEVICE or host.memory_events:
        return low, high
    return low, of_batch(summary, without_kernel(summary, ready))[1]


def of_batch(summary: Summary, changed: Batch, cpus: float | None = None) -> Gain:
    """A batch costs this instead, or there are so many CPUs.

    What the run's cycle takes beyond the model's, as far as it is waits that have nothing to do with a batch, stays.
    Where the loop then goes round several times as fast, what it does for each batch takes less, as the CPU's caches
    still hold it, and a little waiting that was left over from booking the rest may have been none. How much that is
    nobody knows before.
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
    beside = current * (waits.startup - first + waits.border + waits.straggler) / (1.0 - first)
    stays = min(beside, max(current - now, 0.0))
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
    """Share of the workers' very first start, which the steps per second leave out."""
    startup = summary.waits.startup
    if summary.loop.epochs < 2 and startup <= _ONE_START:
        return 0.0
    return min(startup / max(summary.loop.epochs, 1), 1.0 - _SHORTEST)


def _of_rest(rest: float, longer: float = prediction.LONGER, shorter: float = prediction.SHORTER) -> Gain:
    """Of a cycle, this part is left, and it may be so much longer or shorter."""
    rest = max(rest, _SHORTEST)
    return max(1 / (rest * longer) - 1, 0.0), max(1 / (rest * shorter) - 1, 0.0)
