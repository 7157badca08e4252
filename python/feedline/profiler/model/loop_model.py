# SPDX-License-Identifier: Apache-2.0
"""Models the time per batch of a training loop as a pure function of a batch's costs and the loader's settings.

The model is a small deterministic simulation of torch's loader, batch by batch. Task i is assigned to worker i modulo
the number of workers. A task is sent when batch i - workers * prefetch has been received, and begins when its worker
has finished the previous task:

    begun(i)    = max(finished(i - workers), given(i))
    finished(i) = begun(i) + making(i) + packing
    received(i) = max(stepped(i - 1), finished(i)) + unpacking
    given(i + workers * prefetch) = received(i) + drawing
    stepped(i)  = received(i) + drawing + step

At the start of an epoch, workers are idle while the order is drawn, so the loop waits for the whole production of the
first batch. Batches are delivered in order, so a slow batch delays all later batches, and prefetching absorbs the delay
up to its depth; the simulation uses the run's production times in order. The model uses only sums and maxima of times,
so a shorter time never makes the total longer.

A batch takes at least the total CPU time / cpus and, if the disk is saturated, at least the disk time per batch.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

_SIMULATED = 384  # minimum number of batches after the first ones
_ROUNDS = 48  # rounds of all workers, at least: a partial round distorts the average
_LONG_EPOCH = 1024  # batches: in longer epochs, the cost of their start is spread evenly
_DRAWN = 256  # number of times of making, if those of the run are unknown


@dataclass(frozen=True)
class Batch:
    """Costs of one batch in ms."""

    waiting: float = 0.0  # waiting for storage while it is made
    ahead: float = 0.0  # part of the waiting: for prefetched reads
    disk: float = 0.0  # time on a saturated disk, which serves batches sequentially
    cpu: float = 0.0  # CPU of making it
    packing: float = 0.0  # CPU of the worker that sends it
    unpacking: float = 0.0  # CPU of the loop's process that receives it
    exchange: float = 0.0  # that process's waiting for the worker's replies while it receives
    drawing: float = 0.0  # CPU of the loop's process inside next(): the sampler, and sending tasks
    step: float = 0.0  # the loop's own work, including waits for a device
    step_cpu: float = 0.0
    spread: float = 0.0  # standard deviation of the time of making, relative to the mean; used if `times` is empty
    times: tuple[float, ...] = ()  # times of making, in order, relative to the mean
    order: float = 0.0  # CPU of the loop's process, when an epoch begins
    epoch: int = 0  # batches of an epoch; 0 for one endless epoch

    @property
    def made(self) -> float:
        return self.waiting + self.cpu

    def taking(self, factor: float) -> Batch:
        """Returns the costs with production and transfer scaled by `factor`."""
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
    """Returns the time in ms from one batch to the next. `present`: number of workers in the run in which `batch.ahead`
    was measured.
    """
    begins = batch.order / batch.epoch if batch.epoch else 0.0
    handing = batch.packing + batch.unpacking if workers else 0.0
    all_cpu = batch.cpu + handing + batch.drawing + batch.step_cpu
    floor = max(all_cpu / max(cpus, 0.01), batch.disk)
    if workers == 0:
        return max(batch.made + batch.drawing + batch.step + begins, floor)
    return max(_simulated(batch, workers, max(prefetch, 1), max(present or workers, 1)), floor)


@functools.lru_cache(maxsize=512)
def _simulated(batch: Batch, workers: int, prefetch: int, present: int) -> float:
    """Returns the mean time per batch if CPUs are unlimited."""
    epoch, spread_order = batch.epoch, 0.0
    if not 0 < epoch <= _LONG_EPOCH:
        epoch, spread_order = 0, batch.order / epoch if epoch else 0.0
    made, read = batch.made - batch.ahead, batch.ahead * workers / present
    times, held = _times(batch), workers * prefetch
    period = epoch or math.lcm(len(times), workers if len(times) == 1 else 1)
    first = epoch or 4 * workers
    last = first + period * math.ceil(max(_SIMULATED, _ROUNDS * workers, len(times)) / period)
    finished, given = [0.0] * workers, [0.0] * held  # by worker; by task, modulo the number in flight
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
    """Yields the position of each of `count` batches in its epoch; the batch number if `epoch` is 0."""
    return (number % epoch for number in range(count)) if epoch else iter(range(count))


def _times(batch: Batch) -> tuple[float, ...]:
    return batch.times or (_drawn(batch.spread) if batch.spread > 0 else (1.0,))


@functools.lru_cache(maxsize=64)
def _drawn(spread: float) -> tuple[float, ...]:
    """Returns evenly spaced quantiles of a lognormal distribution with mean 1 and this standard deviation, in a fixed
    shuffled order.
    """
    sigma = math.sqrt(math.log1p(spread**2))
    normal = NormalDist()
    times = [math.exp(sigma * normal.inv_cdf((i + 0.5) / _DRAWN)) for i in range(_DRAWN)]
    random.Random(0).shuffle(times)
    mean = sum(times) / _DRAWN
    return tuple(time / mean for time in times)
