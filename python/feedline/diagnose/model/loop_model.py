# SPDX-License-Identifier: Apache-2.0
"""How long a cycle of a training loop lasts: a pure function of what one batch costs, and of the loader's settings.

Workers make batches side by side, the loop takes them in order; whichever is slower sets the pace, and the CPUs may set
a slower one for both:

    max(loop, made / workers, cpu of everything / cpus)

Where batches differ, each side waits for the other now and then. Prefetching lets them drift apart by as many batches
as it holds; over so many, the time that either side takes is nearly normal, and the slower of two normal times has a
mean of its own (Clark, "The greatest of a finite set of random variables", Operations Research 9, 1961). So prefetching
evens out, and makes nothing faster. Batches come in order and workers take turns, so of several workers the one whose
last batches took longest holds up the others; how much, tests/python/diagnose/simulated_loader.py tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

_HELD_UP = 0.7  # of the way to the slowest worker's mean: from simulations of 2 to 8 workers, prefetch 1 to 4


@dataclass(frozen=True)
class Batch:
    """What one batch costs; ms."""

    waiting: float = 0.0  # for storage while it is made, by whoever makes it
    ahead: float = 0.0  # of waiting: for reads that are ahead of all makers
    cpu: float = 0.0  # of its making
    packing: float = 0.0  # CPU of the worker that sends it
    unpacking: float = 0.0  # CPU of the loop's process that receives it
    drawing: float = 0.0  # CPU of the loop's process inside next(): the sampler, and giving tasks
    step: float = 0.0  # the loop's own work, waiting for a device or not
    step_cpu: float = 0.0
    spread: float = 0.0  # standard deviation of its making, in parts of the mean

    @property
    def made(self) -> float:
        return self.waiting + self.cpu


def cycle_ms(batch: Batch, workers: int, cpus: float, prefetch: int = 2, present: int | None = None) -> float:
    """From one batch to the next. `present`: the workers of the run in which `batch.ahead` was measured."""
    if workers == 0:
        return batch.made + batch.drawing + batch.step
    own, ahead = batch.made - batch.ahead + batch.packing, max(prefetch, 1)
    deviation = own * batch.spread
    made = (own + _HELD_UP * _slowest_of(workers) * deviation / math.sqrt(ahead)) / workers
    made += batch.ahead / max(present or workers, 1)
    loop = batch.step + batch.unpacking + batch.drawing
    all_cpu = batch.cpu + batch.packing + batch.unpacking + batch.drawing + batch.step_cpu
    drift = deviation / (workers * math.sqrt(ahead))
    return max(_mean_of_slower(loop, made, drift), all_cpu / max(cpus, 0.01))


def _slowest_of(workers: int) -> float:
    """Mean of the largest of so many normal numbers, in standard deviations (Blom's approximation)."""
    return NormalDist().inv_cdf((workers - 0.375) / (workers + 0.25)) if workers > 1 else 0.0


def _mean_of_slower(one: float, other: float, deviation: float) -> float:
    """Of two times, one of them with this standard deviation."""
    if deviation <= 0:
        return max(one, other)
    apart = (other - one) / deviation
    density = math.exp(-apart * apart / 2) / math.sqrt(2 * math.pi)
    below = (1 + math.erf(apart / math.sqrt(2))) / 2
    return other * below + one * (1 - below) + deviation * density
