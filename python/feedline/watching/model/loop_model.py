# SPDX-License-Identifier: Apache-2.0
"""How long a cycle of a training loop lasts: a pure function of what one batch costs, and of the loader's settings.

A small deterministic simulation of torch's loader, batch by batch. Task i goes to worker i modulo their number; it is
given once batch i - workers * prefetch has been received, and begun once its worker has finished its last one:

    begun(i)    = max(finished(i - workers), given(i))
    finished(i) = begun(i) + making(i) + packing
    received(i) = max(stepped(i - 1), finished(i)) + unpacking
    given(i + workers * prefetch) = received(i) + drawing
    stepped(i)  = received(i) + drawing + step

An epoch begins with the order of its samples and with workers that have nothing to do, so its first batch is waited for
as long as it takes to make. Batches come in order, so one that takes long holds up all behind it, and prefetching
evens that out for as many batches as it holds: the times of making are those of the run, in their order. Only sums and
maxima of times occur, so whatever shortens one of them shortens the whole or leaves it.

The CPUs, and a disk that is full, set a pace of their own: cpu of everything / cpus, and what the disk needs per batch.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

_SIMULATED = 384  # batches, at least, after the first ones
_ROUNDS = 48  # of all workers, at least: a window that cuts one is a part of it off
_LONG_EPOCH = 1024  # batches: beyond, an epoch's begin is spread evenly over them
_DRAWN = 256  # times of making, where those of the run are not known


@dataclass(frozen=True)
class Batch:
    """What one batch costs; ms."""

    waiting: float = 0.0  # for storage while it is made, by whoever makes it
    ahead: float = 0.0  # of waiting: for reads that are ahead of all makers
    disk: float = 0.0  # of a full disk's time: batches pass it one after the other
    cpu: float = 0.0  # of its making
    packing: float = 0.0  # CPU of the worker that sends it
    unpacking: float = 0.0  # CPU of the loop's process that receives it
    exchange: float = 0.0  # that process's waiting for the worker's answers while it receives
    drawing: float = 0.0  # CPU of the loop's process inside next(): the sampler, and giving tasks
    step: float = 0.0  # the loop's own work, waiting for a device or not
    step_cpu: float = 0.0
    spread: float = 0.0  # standard deviation of its making, in parts of the mean; where `times` is empty
    times: tuple[float, ...] = ()  # of making, in order, in parts of the mean
    order: float = 0.0  # of the loop's process, when an epoch begins
    epoch: int = 0  # batches of an epoch; 0: one epoch without end

    @property
    def made(self) -> float:
        return self.waiting + self.cpu

    def taking(self, factor: float) -> Batch:
        """The same where making it and handing it over take `factor` times as long."""
        return replace(
            self,
            waiting=self.waiting * factor,
            ahead=self.ahead * factor,
            disk=self.disk * factor,
            cpu=self.cpu * factor,
            packing=self.packing * factor,
            unpacking=self.unpacking * factor,
        )


def cycle_ms(batch: Batch, workers: int, cpus: float, prefetch: int = 2, present: int | None = None) -> float:
    """From one batch to the next. `present`: the workers of the run in which `batch.ahead` was measured."""
    begins = batch.order / batch.epoch if batch.epoch else 0.0
    handing = batch.packing + batch.unpacking if workers else 0.0
    all_cpu = batch.cpu + handing + batch.drawing + batch.step_cpu
    floor = max(all_cpu / max(cpus, 0.01), batch.disk)
    if workers == 0:
        return max(batch.made + batch.drawing + batch.step + begins, floor)
    return max(_simulated(batch, workers, max(prefetch, 1), max(present or workers, 1)), floor)


@functools.lru_cache(maxsize=512)
def _simulated(batch: Batch, workers: int, prefetch: int, present: int) -> float:
    """Mean time of a batch, with a CPU for everybody."""
    epoch, spread_order = batch.epoch, 0.0
    if not 0 < epoch <= _LONG_EPOCH:
        epoch, spread_order = 0, batch.order / epoch if epoch else 0.0
    made, read = batch.made - batch.ahead, batch.ahead * workers / present
    times, held = _times(batch), workers * prefetch
    period = epoch or math.lcm(len(times), workers if len(times) == 1 else 1)
    first = epoch or 4 * workers
    last = first + period * math.ceil(max(_SIMULATED, _ROUNDS * workers, len(times)) / period)
    finished, given = [0.0] * workers, [0.0] * held  # by worker; by task, modulo those that are held
    now = began = 0.0
    for number, position in enumerate(_positions(last, epoch)):
        if number == first:
            began = now
        if position == 0:
            now += batch.order if epoch else 0.0
            for task in range(min(held, epoch or held)):
                now += batch.drawing
                given[task] = now
        worker, task = position % workers, position % held
        begun = max(finished[worker], given[task])
        finished[worker] = begun + made * times[number % len(times)] + read + batch.packing
        now = max(now, finished[worker]) + batch.exchange + batch.unpacking
        if not epoch or position + held < epoch:
            now += batch.drawing
            given[task] = now
        now += batch.step
    return (now - began) / (last - first) + spread_order


def _positions(count: int, epoch: int) -> Iterator[int]:
    """In their epochs, of so many batches."""
    return (number % epoch for number in range(count)) if epoch else iter(range(count))


def _times(batch: Batch) -> tuple[float, ...]:
    return batch.times or (_drawn(batch.spread) if batch.spread > 0 else (1.0,))


@functools.lru_cache(maxsize=64)
def _drawn(spread: float) -> tuple[float, ...]:
    """Of a lognormal distribution with mean 1 and this deviation, evenly over its quantiles, in one fixed disorder."""
    sigma = math.sqrt(math.log1p(spread**2))
    normal = NormalDist()
    times = [math.exp(sigma * normal.inv_cdf((i + 0.5) / _DRAWN)) for i in range(_DRAWN)]
    random.Random(0).shuffle(times)
    mean = sum(times) / _DRAWN
    return tuple(time / mean for time in times)
