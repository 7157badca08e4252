# SPDX-License-Identifier: Apache-2.0
"""The planned loader needs more memory than is left."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ...machine.planned_load import Need, PlannedLoad, need_of
from ..case import LOAD, Case, Cause, Found, gb, page

MOST = Threshold(0.8, "of the memory that is left: the script itself and the page cache need some")


def _judge(case: Case) -> Iterator[Found]:
    load, memory = case.load, case.machine.memory
    if load is None or not memory.told:
        return
    need = need_of(load)
    if need.least - need.copies > memory.left or (need.least > memory.left and 2 * need.copies <= need.least):
        yield Found("critical", (f"needs {gb(need.least)} of {gb(memory.left)}", *_parts(load, need, case)))
    elif need.least <= memory.left and (need.least > MOST * memory.left or need.most > memory.left):
        later = f", and up to {gb(need.most)} with all page-locked" if need.most > need.least else ""
        yield Found("warning", (f"needs {gb(need.least)} of {gb(memory.left)}{later}", *_parts(load, need, case)))


def _parts(load: PlannedLoad, need: Need, case: Case) -> list[str]:
    ranks = f"{load.ranks} ranks x " if load.ranks > 1 else ""
    found = [
        f"{ranks}{load.workers} workers x {load.prefetch} ahead x {gb(load.batch_bytes or 0)} = {gb(need.waiting)}"
    ]
    found.append(f"batches in hand{', page-locked' if load.pinned else ''}: {gb(need.in_hand)}")
    if need.copies:
        found.append(f"copies of the dataset in workers: {gb(need.copies)}")
    if case.machine.memory.swap and load.pinned:
        found.append("swap does not help with page-locked batches")
    return found


CAUSE = Cause(
    page(
        "memory_needed",
        "the planned loader needs more memory than is left",
        means="What workers make ahead waits in memory: workers x prefetch x batch, of every rank of this "
        "machine. Beside it are the batches in hand, page-locked ones in powers of two, which cannot be "
        "swapped out, and what each worker copies of the dataset.",
        recognised="By arithmetic, before anything starts: what is needed at least against what is left of the "
        "machine and of every control group; a warning where it takes most of that, or would once torch "
        "has page-locked all batches that can wait.",
        to_do="In this order: prefetch_factor=2 or 1, fewer workers, smaller batches; memory-mapped files "
        "instead of arrays in every worker. feedline.DataLoader holds waiting batches within "
        "memory_budget=.",
        abstains="The bytes of a batch are not known (--batch-mb), or /proc/meminfo could not be read.",
        example="needs 41.1 GB of 38.0 GB.",
    ),
    turn=LOAD + 10,
    judge=_judge,
)
