# SPDX-License-Identifier: Apache-2.0
"""Predicts the effect of a ladder's rung from the measurements of earlier rungs, before the rung is measured.

If a cycle with the settings accepted so far consists of a wait W and the remaining time S, no change to the loader
makes the loop faster than one batch per S.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from feedline.tune.moves import Candidate
from feedline.tune.search import Expected, Visit
from feedline.tune.settings import Setting

_NOTHING_LEFT = 0.02  # share of waiting below which no change of the loader helps
_LONG_WAIT = 3.0  # times the median wait: waits that a longer queue may absorb
_SHORTEST = 0.01  # minimum share of a cycle that remains


def of(
    candidate: Candidate,
    champion: Setting,
    visits: Mapping[Setting, Sequence[Visit]],
    cpus: int,
    copy_share: Callable[[Setting], float | None],
) -> Expected | None:
    """Returns the expected effect; None if nothing is known about it.

    Args:
        cpus: CPUs that the loader may use.
        copy_share: returns the share of the loop's time that is spent in calls that copy batches, or None if the
            setting was not measured.
    """
    seen = [visit for visit in visits.get(champion, ()) if visit.wait_share is not None]
    if not seen:
        return None
    wait = statistics.median(visit.wait_share or 0.0 for visit in seen)
    setting = candidate.setting
    if candidate.border:
        return Expected(0.0, 0.1, "only the start of workers in each epoch is saved: up to a tenth in short epochs")
    if setting.batch_size != champion.batch_size:
        return _of_batch_size(wait)
    if (setting.pin_memory, setting.non_blocking) != (champion.pin_memory, champion.non_blocking):
        return _of_copies(setting, champion, copy_share(champion))
    if setting.loader != champion.loader:
        return Expected(0.0, _without(wait), f"the loop waits {wait:.0%} of its time, which a faster loader can save")
    if setting.num_workers != champion.num_workers:
        return _of_workers(setting.num_workers, champion.num_workers, wait, cpus)
    return _of_prefetching(seen, wait)


def _of_workers(number: int, present: int, wait: float, cpus: int) -> Expected:
    """Times are in cycles of the present settings. A single worker produces a batch in `least` to `most` cycles: the
    least is zero if the loop waits only for the hand-over of batches, which fewer workers may shorten.
    """
    is_waiting = wait > _NOTHING_LEFT
    step = 1 - wait if is_waiting else 1.0
    most = (wait if present == 0 else float(present)) if is_waiting else float(present)
    least = most if is_waiting and number > present else 0.0

    def gain(production: float, concurrent: int) -> float:
        cycle = step + production if number == 0 else max(step, production / max(concurrent, 1))
        return 1 / max(cycle, _SHORTEST) - 1

    waits = f"the loop waits {wait:.0%} of its time"
    if number == 0:
        why = f"{waits}; without workers, it waits while each batch is produced, but not for the hand-over"
    elif number < present:
        why = f"{waits}; {number} of {present} workers suffice only if the others are idle"
    elif not is_waiting:
        why = f"{waits}, so more batches do not help"
    else:
        why = f"{waits}, which is the most that more workers can save; {cpus} CPUs can produce batches"
    return Expected(gain(most, min(number, cpus)), gain(least, number), why)


def _of_copies(setting: Setting, champion: Setting, share: float | None) -> Expected:
    if share is None:
        return Expected(0.0, 0.3, "guides report up to 30 %; the time of copies was not measured")
    if champion.pin_memory and not setting.pin_memory:
        return Expected(-0.3, 0.0, "copies from pageable memory take longer and block the loop")
    return Expected(0.0, _without(share), f"the loop spends {share:.0%} of its time in calls that copy batches")


def _of_prefetching(seen: Sequence[Visit], wait: float) -> Expected:
    waits = [one for visit in seen for one in visit.waits_ms]
    median = statistics.median(waits) if waits else 0.0
    long = sum(one for one in waits if one > _LONG_WAIT * median) / max(sum(waits), 1e-9)
    return Expected(
        0.0,
        _without(wait * long),
        f"a longer queue only absorbs uneven waits: {wait * long:.0%} of the time is in waits of over {_LONG_WAIT:g} "
        "times the median",
    )


def _of_batch_size(wait: float) -> Expected:
    return Expected(
        0.0,
        1.0,
        f"a larger batch can use the GPU up to twice as well; the loader's share of {wait:.0%} does not shrink, "
        "because each sample costs as much as before",
    )


def _without(share: float) -> float:
    return 1 / max(1 - share, _SHORTEST) - 1
