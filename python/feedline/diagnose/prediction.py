# SPDX-License-Identifier: Apache-2.0
"""What a change would gain, from measured times: a batch costs the slowest of what works in parallel.

With w workers a cycle of the loop lasts

    max(step + unpickle, made / w, (cpu + loop_cpu) / cpus)

where ``made`` is a batch's time in a worker that has a CPU whenever it wants one; without workers, step + made. The
first term is the loop itself, the second what w workers make, the third what the CPUs can do for all. Prefetching does
not appear: it evens out batches of different cost, and cannot make batches faster (R22).
"""

from __future__ import annotations

from collections.abc import Iterable

from feedline.diagnose.summary import Summary

# Batches differ, and the model has no queues: real cycles were up to so much longer, rarely shorter.
_LONGER, _SHORTER = 1.25, 0.95
_MOST_WORKERS = 64
_REACH = 4  # times the present workers: further off, the model has been checked against nothing
_CLEARLY, _CLEARLY_MEASURED = 0.95, 0.9


def cycle_ms(summary: Summary, workers: int, cpus: float | None = None) -> float:
    """Predicted time of one batch, from next() to next()."""
    making, available = summary.making, max(cpus or summary.host.cpus, 0.01)
    measured = summary.rungs.get(workers)
    made = 1000 / measured if measured else _made_ms(summary, workers)
    if workers == 0:
        return summary.step_ms + made
    cpu = making.cpu_ms + making.pickle_ms + making.unpickle_ms + summary.step_cpu_ms
    return max(summary.step_ms + making.unpickle_ms, made, cpu / available)


def loader_rate(summary: Summary, workers: int) -> float | None:
    """Batches per second that the model gives the loader alone: what a rung of the ladder measures."""
    making = summary.making
    cpu_ms = (making.cpu_ms + making.pickle_ms + making.unpickle_ms) / max(summary.host.cpus, 0.01)
    ms = max(_made_ms(summary, workers), cpu_ms if workers else 0.0)
    return 1000 / ms if ms > 0 else None


def _made_ms(summary: Summary, workers: int) -> float:
    """Between two batches that so many make together; what is read ahead of all comes as it comes."""
    making, present = summary.making, max(summary.workers, 1)
    own = making.wall_ms - making.read_ahead_ms
    return own / max(workers, 1) + making.read_ahead_ms / present


def current_ms(summary: Summary) -> float:
    """Measured time of a batch, with epochs' borders spread over all."""
    return 1000 * summary.loop_s / max(summary.steps, 1)


def gain(summary: Summary, cycle: float) -> tuple[float, float]:
    """(low, high): by which share more batches per second, if a batch then takes `cycle` ms.

    Compared with what the model gives for the settings as they are, so that a busy machine speaks for neither.
    """
    now = cycle_ms(summary, summary.workers)
    if cycle <= 0 or now <= 0:
        return 0.0, 0.0
    return max(now / (cycle * _LONGER) - 1, 0.0), max(now / (cycle * _SHORTER) - 1, 0.0)


def gain_of_share(share: float, least: float = 0.5) -> tuple[float, float]:
    """If at least a part `least`, at most all, of this share of the time went away."""
    share = min(max(share, 0.0), 0.99)
    return least * share / (1 - least * share), share / (1 - share)


def within_reach(summary: Summary) -> range:
    """Numbers of workers, from the present one on, that a prediction from this run is good for."""
    present = max(summary.workers, 1)
    return range(present, _REACH * present + 1)


def best_workers(summary: Summary, candidates: Iterable[int] | None = None) -> int:
    """The fewest workers that no larger number beats clearly; of the measured ones where a ladder was measured."""
    numbers = sorted(candidates or range(1, _MOST_WORKERS + 1))
    measured = [workers for workers in numbers if workers in summary.rungs]
    clearly = _CLEARLY_MEASURED if measured else _CLEARLY
    best, *larger = measured or numbers
    for workers in larger:
        if cycle_ms(summary, workers) < clearly * cycle_ms(summary, best):
            best = workers
    return best
