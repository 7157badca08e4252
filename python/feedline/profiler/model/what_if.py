# SPDX-License-Identifier: Apache-2.0
"""Predicts the loop's batches per second for other numbers of workers, prefetching, batch sizes, formats, and caches.

All functions are pure functions of the measured times. If the measured times do not determine an effect, the result is
an interval between the extremes: a step with twice as many samples takes between one and two times as long, and reading
samples from shards reduces the waiting time to between 0 and 10 % of the previous time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from feedline.profiler.model import loop_model, prediction
from feedline.profiler.model.loop_model import Batch
from feedline.profiler.summary.figures import DROP_IN, Summary

_NEGLIGIBLE = 0.02  # of a batch's making: removing less has no measurable effect
_LEAST_LEFT, _MOST_LEFT = 0.0, 0.1  # of the waiting for storage, if adjacent samples are read together
_SLOWEST = 0.01  # speedup: lower ones are not predicted
_COPIED = 0.2  # maximum share of decoding CPU that copying decoded pixels takes


@dataclass(frozen=True)
class WhatIf:
    """A single change; rates are in batches of the current size."""

    change: str
    low: float  # batches per second
    high: float
    now: float  # the model's rate for the current settings

    @property
    def gain(self) -> tuple[float, float]:
        return self.low / self.now - 1, self.high / self.now - 1

    @property
    def is_drop_in(self) -> bool:
        """Whether the change is to use Feedline's DataLoader instead of torch's."""
        return self.change.startswith(DROP_IN)


def what_if(summary: Summary) -> list[WhatIf]:
    """Returns an empty list if nothing was measured."""
    if summary.loop.steps == 0 or summary.making.batches == 0:
        return []
    now = _rate(summary, prediction.batch_of(summary))
    return [WhatIf(change, min(rates), max(rates), now) for change, rates in _changes(summary) if now > 0]


_DEPTHS = (1, 2, 4, 8)


def by_workers_and_depth(summary: Summary, advised: Iterable[int] = ()) -> dict[int, dict[int, float]]:
    """Returns the loop's predicted batches per second by number of workers and, for each, by prefetched batches per
    worker. Contains the current settings and the numbers of workers in `advised`; without workers, the only depth is 0.

    Empty if nothing was measured, or for a loader with threads, which prefetches by bytes.
    """
    if summary.loop.steps == 0 or summary.making.batches == 0 or summary.native:
        return {}
    batch, present = prediction.batch_of(summary), summary.workers
    numbers = {present, *_other_numbers(summary), *advised}
    depths = sorted({*_DEPTHS, prediction.prefetch_of(summary)})
    found: dict[int, dict[int, float]] = {}
    for workers in sorted(numbers):
        faster = _with_workers(summary, batch, workers) / max(_rate(summary, batch, workers), 1e-9)
        found[workers] = {
            depth: faster * _rate(summary, batch, workers, depth or None) for depth in (depths if workers else [0])
        }
    return found


def _other_numbers(summary: Summary) -> set[int]:
    """Returns the numbers of workers to predict: fewer, more, and those that measurements or the model recommend."""
    present = max(summary.workers, 1 if summary.native else 0)
    numbers = {max(present // 2, 1), present + 1, 2 * present}
    if present == 0:
        numbers |= {2, 4}
    found = (prediction.fewer_workers(summary), prediction.advised_workers(summary, prediction.within_reach(summary)))
    return (numbers | {one for one in found if one is not None}) - {present, 0}


def of_prefetching(summary: Summary, workers: int, prefetch: int) -> float:
    """Returns the speedup with this number of workers and of prefetched batches per worker."""
    batch = prediction.batch_of(summary)
    now = _rate(summary, batch, workers)
    return _rate(summary, batch, workers, prefetch) / now if now > 0 else 1.0


def _changes(summary: Summary) -> Iterator[tuple[str, tuple[float, ...]]]:
    batch, prefetch = prediction.batch_of(summary), prediction.prefetch_of(summary)
    present = max(summary.workers, 1 if summary.native else 0)
    for workers in sorted(_other_numbers(summary)):
        yield f"num_workers={workers}", (_with_workers(summary, batch, workers),)
    _, low, high = summary.ladder.tried.get(DROP_IN, (1.0, 0.0, math.inf))
    if low > 1 or high < 1:  # otherwise the comparison is undecided
        yield f"{DROP_IN} (measured alone)", tuple(_with_loader(summary, times) for times in (low, high))
    if present and not summary.native:
        yield f"prefetch_factor={2 * prefetch}", (_rate(summary, batch, prefetch=2 * prefetch),)
    for factor in (0.5, 2.0):
        larger = with_samples(batch, factor)
        steps = (batch.step, batch.step * factor)
        yield _size(summary, factor), tuple(factor * _rate(summary, replace(larger, step=step)) for step in steps)
    stages = summary.making.stages or {}
    seen = summary.making.waited_for
    in_files = 1.0 if seen is None else seen.in_files  # shards reduce no other kind of waiting
    if stages.get("storage", 0.0) * in_files > _NEGLIGIBLE:
        left = (1.0 - in_files * (1.0 - _LEAST_LEFT), 1.0 - in_files * (1.0 - _MOST_LEFT))
        yield "packed into shards", tuple(_rate(summary, without(summary, batch, part, 1.0)) for part in left)
    if stages.get("decode", 0.0) > _NEGLIGIBLE:
        left = (_LEAST_LEFT, _COPIED)
        yield (
            "decoded once (--raw, or a cache)",
            tuple(_rate(summary, without(summary, batch, 0.0, p)) for p in left),
        )


def _with_workers(summary: Summary, batch: Batch, workers: int) -> float:
    """Uses the trials if both numbers were measured, as measurements take precedence over predictions."""
    if workers in summary.ladder.rungs and summary.workers in summary.ladder.rungs:
        faster = prediction.cycle_ms(summary, summary.workers) / prediction.cycle_ms(summary, workers)
        return _rate(summary, batch) * faster
    return _rate(summary, batch, workers)


def _with_loader(summary: Summary, times: float) -> float:
    """Returns the speedup of the loop if the loader is faster by this factor."""
    return _rate(summary, prediction.with_loader_taking(prediction.batch_of(summary), 1 / max(times, _SLOWEST)))


def _size(summary: Summary, factor: float) -> str:
    size = summary.loader.get("batch_size")
    return f"batch_size={max(round(size * factor), 1)}" if isinstance(size, int) else f"{factor:g} times the batch size"


def with_samples(batch: Batch, factor: float) -> Batch:
    """Returns the costs of a batch with `factor` times as many samples; the cost of the step is unchanged.

    Times are sums over consecutive batches, or have the spread of a sum. The variation within a batch is unknown.
    """
    return replace(
        batch.taking(factor),
        spread=batch.spread / factor**0.5,
        times=joined(batch.times, round(factor)) if factor > 1 else batch.times,
        epoch=max(round(batch.epoch / factor), 1) if batch.epoch else 0,
    )


def joined(times: Sequence[float], count: int) -> tuple[float, ...]:
    """Returns the times that batches would have if each combined `count` consecutive batches."""
    whole = len(times) // count * count
    return tuple(sum(times[i : i + count]) / count for i in range(0, whole, count))


def without(summary: Summary, batch: Batch, waiting: float, decoding: float) -> Batch:
    """Returns the costs if only these fractions of the storage wait and of the decoding CPU time remain."""
    stages = summary.making.stages or {}
    running = sum(share for name, share in stages.items() if name != "storage")
    decoded = batch.cpu * stages.get("decode", 0.0) / running if running > 0 else 0.0
    return replace(
        batch,
        waiting=batch.waiting * waiting,
        ahead=batch.ahead * waiting,
        disk=batch.disk * waiting,
        cpu=batch.cpu - decoded * (1 - decoding),
    )


def _rate(summary: Summary, batch: Batch, workers: int | None = None, prefetch: int | None = None) -> float:
    count = summary.workers if workers is None else workers
    if summary.native:
        count = max(count, 1)
    ahead = prefetch or prediction.prefetch_of(summary)
    cycle = loop_model.cycle_ms(batch, count, summary.host.cpus, ahead, max(summary.workers, 1))
    return 1000 / cycle if cycle > 0 else 0.0
