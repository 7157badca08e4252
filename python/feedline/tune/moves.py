# SPDX-License-Identifier: Apache-2.0
"""The order in which settings are tried. Each move receives a flag that shows whether its last candidate was
accepted."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

from feedline.tune.settings import DROP_IN, SOURCE, Limits, Setting


@dataclass(frozen=True)
class Candidate:
    setting: Setting
    change: str
    must_gain: bool = True  # False: it uses less than the setting it would replace, so being as fast suffices
    alone: bool = False  # judged by the loader without the loop
    border: bool = False  # judged by the time between epochs
    reported: bool = False  # measured for the report, and never accepted: it would change the training


Moves = Generator[Candidate, bool, None]


def workers(now: Setting, limits: Limits) -> Moves:
    """Tries zero workers, then doubles the number of workers until two consecutive steps gain nothing or the number
    exceeds the CPUs; if no step gained, tries fewer workers.

    Any number that replaces "auto", even a smaller one, must be faster, since "auto" adapts by itself.
    """
    own, automatic = now.num_workers, now.auto
    if automatic:
        yield Candidate(now.but(num_workers=own), _counted(now, own))
    if own > 0 and now.loader != SOURCE:
        nothing = now.but(num_workers=0, pin_memory=now.pin_memory and not limits.gpu)
        if (yield Candidate(nothing, "no workers", must_gain=False)):
            now, own = nothing, 0
    misses, number, best = 0, own, own
    while misses < 2:
        number = 2 * number or 1
        if number > limits.most_workers:
            break
        if (yield Candidate(now.but(num_workers=number), _counted(now, number))):
            misses, best = 0, number
        else:
            misses += 2 if number >= limits.cpus else 1
    if best == own:
        while best > 1 and (yield Candidate(now.but(num_workers=best // 2), _counted(now, best // 2), automatic)):
            best //= 2


def pinning(now: Setting, limits: Limits) -> Moves:
    if limits.gpu and now.loader != SOURCE and not now.pin_memory:
        yield Candidate(now.but(pin_memory=True), "pinned memory")


def prefetching(now: Setting, limits: Limits) -> Moves:
    """Increases prefetching as long as each increase gains; for a source, increases the bytes prefetched."""
    if now.loader == SOURCE:
        ahead = now.memory_budget or limits.ahead or limits.memory // 8
        while 2 * ahead <= limits.memory:
            ahead *= 2
            if not (yield Candidate(now.but(memory_budget=ahead), f"{size_words(ahead)} ahead")):
                return
        return
    depth = now.prefetch_factor or 0
    while 0 < depth <= 8:
        depth *= 2
        if not (yield Candidate(now.but(prefetch_factor=depth), f"prefetch {depth}")):
            return


def persistence(now: Setting, limits: Limits) -> Moves:
    if now.loader != SOURCE and now.num_workers > 0 and not now.persistent_workers:
        yield Candidate(now.but(persistent_workers=True), "persistent workers", border=True)


def drop_in(now: Setting, limits: Limits) -> Moves:
    """Tries `from feedline import DataLoader`, with the same number of workers and with the number of CPUs."""
    if now.loader == SOURCE or now.loader == DROP_IN:
        return
    ours = now.but(loader=DROP_IN)
    if not (yield Candidate(ours, "Feedline's DataLoader")) and now.num_workers != limits.cpus:
        number = min(limits.cpus, limits.most_workers)
        yield Candidate(ours.but(num_workers=number), f"Feedline's DataLoader, {_counted(now, number)}")


def refinement(now: Setting, limits: Limits) -> Moves:
    """Tries numbers of workers between the doubled numbers, above and below the accepted one; a smaller number is
    accepted if it is as fast.
    """
    number = now.num_workers
    for other in (number - number // 4, number + number // 2):
        if other == number or not 1 <= other <= limits.most_workers:
            continue
        if (yield Candidate(now.but(num_workers=other), _counted(now, other), must_gain=other > number or now.auto)):
            return


def batch_sizes(now: Setting, limits: Limits) -> Moves:
    """Tries batch sizes, compared by the loader's samples per second, since their effect on a step is unknown."""
    if limits.batch_sizes is None or now.batch_size is None:
        return
    low, high = limits.batch_sizes
    for factor in (2.0, 0.5):
        size = now.batch_size
        while True:
            size = min(max(int(size * factor), low), high)
            if size == now.batch_size or (factor > 1) != (size > now.batch_size):
                break
            candidate = Candidate(now.but(batch_size=size), f"batches of {size}", alone=now.loader != SOURCE)
            if not (yield candidate):
                break
            now = candidate.setting
            if size in (low, high):
                break


ALL = (workers, drop_in, pinning, prefetching, persistence, refinement, batch_sizes)


def _counted(setting: Setting, number: int) -> str:
    return f"{number} {'thread' if setting.loader == SOURCE else 'worker'}{'s' * (number != 1)}"


def size_words(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count = math.ceil(count / 1000)
    return f"{count} GB"
