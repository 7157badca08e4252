# SPDX-License-Identifier: Apache-2.0
"""What it would gain if a cause were gone altogether and all else stayed: what a verdict promises.

A cause's share of the time is not what its going gives back. Batches are made beside the loop, so what takes its place
as the slowest part sets the pace then: the step, another stage, or the CPUs. So what is left of a cycle comes from the
model wherever the cause is a part of it, and from the share only where the loop itself stood still meanwhile.
"""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.causes.case import NAMED
from feedline.diagnose.model import loop_model, prediction
from feedline.diagnose.model.loop_model import Batch
from feedline.diagnose.summary.figures import Summary

Gain = tuple[float, float]
NOTHING: Gain = (0.0, 0.0)
_AGAIN = 1.1  # what the same script's cycles differ by, from run to run
_ONE_START = 0.25  # of the time: of one epoch a shorter start is not counted, and what is are workers that stop
_SHORTEST = 0.01  # of a cycle: what no share explains is not gone with all that are


def of_share(summary: Summary, share: float) -> Gain:
    """The loop stood still for this share of its time, and now goes on. It was measured, and not modelled."""
    return _of_rest(1.0 - share / (1.0 - _first_start(summary)), _AGAIN, 1 / _AGAIN)


def of_workers(summary: Summary, workers: int) -> Gain:
    """So many workers make the batches. A straggling sample holds up the batches behind it as before."""
    waits, making, seen = summary.waits, summary.making, summary
    if not summary.workers and waits.straggler >= NAMED:  # a batch's mean and the rungs hold it, and it stays
        usual = waits.production / (waits.production + waits.straggler)
        making = replace(making, wall_ms=making.wall_ms * usual, cpu_ms=making.cpu_ms * usual)
        seen = replace(summary, making=making, rungs={})
    now, then = (prediction.cycle_ms(seen, number) for number in (summary.workers, workers))
    return _beside_waits(summary, now, then)


def without_stages(summary: Summary, *gone: str) -> Gain:
    """Batches are made without these of their stages."""
    batch, stages = prediction.batch_of(summary), summary.making.stages or {}
    running = sum(part for name, part in stages.items() if name != "storage")
    kept = 1.0 - sum(stages.get(name, 0.0) for name in gone if name != "storage") / max(running, 1e-9)
    waits = 0.0 if "storage" in gone else 1.0
    lighter = replace(batch, cpu=batch.cpu * kept, waiting=batch.waiting * waits, ahead=batch.ahead * waits)
    return of_batch(summary, lighter)


def without_pools(summary: Summary) -> Gain:
    """Workers do themselves what their pools did, at best without the waits. The work stays, so nothing is sure."""
    waiting = (summary.making.stages or {}).get("storage", 0.0)
    running = summary.making.wall_ms * (1.0 - waiting)  # with the CPU of other threads
    batch = prediction.batch_of(summary)
    return 0.0, of_batch(summary, replace(batch, waiting=0.0, ahead=0.0, cpu=max(batch.cpu, running)))[1]


def of_batch(summary: Summary, changed: Batch, cpus: float | None = None) -> Gain:
    """A batch costs this instead, or there are so many CPUs."""
    available, prefetch = summary.host.cpus, prediction.prefetch_of(summary)
    workers = max(summary.workers, 1) if summary.native else summary.workers
    now = loop_model.cycle_ms(prediction.batch_of(summary), workers, available, prefetch, workers)
    then = loop_model.cycle_ms(changed, workers, cpus or available, prefetch, workers)
    return _beside_waits(summary, now, then)


def of_persistence(summary: Summary) -> Gain:
    """Workers start once instead of in each epoch.

    The loop's process draws the order while they start. Where an epoch begins later than that and the making of a batch
    explain, it is the order that is waited for, and of a start only what precedes the worker's first line comes back.
    """
    waits, making, epochs = summary.waits, summary.making, summary.epochs
    if epochs < 2:
        return NOTHING
    share = waits.startup - _first_start(summary)
    whole_ms = 1000 * summary.loop_s / (1.0 - _first_start(summary))
    start_ms, border_ms = waits.startup * whole_ms / epochs, waits.border * whole_ms / (epochs - 1)
    if waits.border >= NAMED and border_ms > making.wall_ms and making.startup_ms is not None:
        share *= 1.0 - min(making.startup_ms / max(start_ms, 1e-9), 1.0)
    return of_share(summary, share)


def _first_start(summary: Summary) -> float:
    """Share of the workers' very first start, which the steps per second leave out."""
    startup = summary.waits.startup
    if summary.epochs < 2 and startup <= _ONE_START:
        return 0.0
    return min(startup / max(summary.epochs, 1), 1.0 - _SHORTEST)


def _beside_waits(summary: Summary, now: float, then: float) -> Gain:
    """The model's part of the loop takes `then` instead of `now`; the waits that it does not know stay."""
    waits, first = summary.waits, _first_start(summary)
    stays = min((waits.startup - first + waits.border + waits.straggler) / (1.0 - first), 1.0)
    return _of_rest(stays + (1 - stays) * min(then / max(now, 1e-9), 1.0))


def _of_rest(rest: float, longer: float = prediction.LONGER, shorter: float = prediction.SHORTER) -> Gain:
    """Of a cycle, this part is left, and it may be so much longer or shorter."""
    rest = max(rest, _SHORTEST)
    return max(1 / (rest * longer) - 1, 0.0), max(1 / (rest * shorter) - 1, 0.0)
