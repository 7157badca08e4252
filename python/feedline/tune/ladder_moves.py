# SPDX-License-Identifier: Apache-2.0
"""The rungs of a ladder in order. Each rung is measured in new processes, so there are fewer than in a search on a copy
of the process, and they include the GPU.
"""

from __future__ import annotations

from feedline.tune.moves import Candidate, Moves, drop_in, persistence
from feedline.tune.settings import Limits, Setting

_MOST_SIZES = 6  # doublings of the batch size
_DEEPEST = 4


def workers(now: Setting, limits: Limits) -> Moves:
    """Tries no workers, half of the advised number, the advised number, and twice that number while it gains."""
    if now.num_workers > 0 and (yield Candidate(now.but(num_workers=0), "no workers", must_gain=False)):
        now = now.but(num_workers=0)
    advised = max(min(limits.advised_workers, limits.most_workers), 1)
    numbers, gained = sorted({max(advised // 2, 1), advised} - {now.num_workers}), False
    for number in numbers:
        gained = yield Candidate(
            now.but(num_workers=number), _counted(number), must_gain=number > now.num_workers or now.num_workers == 0
        )
        if gained:
            now = now.but(num_workers=number)
    if gained and 2 * advised <= limits.most_workers and now.num_workers == advised:
        yield Candidate(now.but(num_workers=2 * advised), _counted(2 * advised))


def pinning(now: Setting, limits: Limits) -> Moves:
    """Compares page-locked with pageable memory in either case, then blocking with non-blocking copies."""
    if not now.pin_memory:
        yield Candidate(now.but(pin_memory=True, non_blocking=True), "pinned memory, non_blocking")
        return
    if (yield Candidate(now.but(pin_memory=False, non_blocking=False), "without pinned memory")):
        return
    if not now.non_blocking:
        yield Candidate(now.but(non_blocking=True), "non_blocking copies")


def prefetching(now: Setting, limits: Limits) -> Moves:
    depth = now.prefetch_factor or 0
    if depth > 2 and (yield Candidate(now.but(prefetch_factor=2), "prefetch 2", must_gain=False)):
        return
    if 0 < depth < _DEEPEST:
        yield Candidate(
            now.but(prefetch_factor=2 if depth < 2 else _DEEPEST), f"prefetch {2 if depth < 2 else _DEEPEST}"
        )


def batch_growth(now: Setting, limits: Limits) -> Moves:
    """Doubles the batch size until the GPU's memory is full. A size is only accepted if the user gave a range."""
    if now.batch_size is None:
        return
    size, most = now.batch_size, limits.batch_sizes[1] if limits.batch_sizes else now.batch_size << _MOST_SIZES
    while size < most:
        size = min(2 * size, most)
        larger = now.but(batch_size=size)
        if not (yield Candidate(larger, f"batches of {size}", reported=limits.batch_sizes is None)):
            return


ALL = (workers, pinning, prefetching, persistence, drop_in, batch_growth)
WITHOUT_GPU = (workers, prefetching, persistence, drop_in)


def _counted(number: int) -> str:
    return f"{number} worker{'s' * (number != 1)}"
