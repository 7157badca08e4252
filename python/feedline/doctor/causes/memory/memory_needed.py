# SPDX-License-Identifier: Apache-2.0
"""The planned loader needs more memory than is available."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ....machine.planned_load import Need, PlannedLoad, need_of
from ...rules import LOAD, Analysis, Cause, Found, gb, page

MOST = Threshold(0.8, "share of the available memory; the script itself and the page cache need the rest")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    load, memory = analysis.load, analysis.machine.memory
    if load is None or not memory.is_known:
        return
    need = need_of(load)
    if need.least - need.copies > memory.left or (need.least > memory.left and 2 * need.copies <= need.least):
        yield Found(
            "critical", (f"needs {gb(need.least)}, but {gb(memory.left)} is left", *_parts(load, need, analysis))
        )
    elif need.least <= memory.left and (need.least > MOST * memory.left or need.most > memory.left):
        later = f", and up to {gb(need.most)} if all batches are page-locked" if need.most > need.least else ""
        yield Found(
            "warning", (f"needs {gb(need.least)} of the {gb(memory.left)} left{later}", *_parts(load, need, analysis))
        )


def _parts(load: PlannedLoad, need: Need, analysis: Analysis) -> list[str]:
    ranks = f"{load.ranks} ranks x " if load.ranks > 1 else ""
    found = [
        f"{ranks}{load.workers} workers x {load.prefetch} prefetched x {gb(load.batch_bytes or 0)} = {gb(need.waiting)}"
    ]
    found.append(f"current batches{', page-locked' if load.pinned else ''}: {gb(need.in_hand)}")
    if need.copies:
        found.append(f"copies of the dataset in workers: {gb(need.copies)}")
    if analysis.machine.memory.swap and load.pinned:
        found.append("swap does not help with page-locked batches")
    return found


CAUSE = Cause(
    page(
        "memory_needed",
        "the planned loader needs more memory than is available",
        means="Prefetched batches are queued in memory: workers x prefetch x batch, for every rank on this machine. "
        "Current batches and the parts of the dataset that each worker copies need further memory. Page-locked "
        "batches, whose sizes are rounded up to powers of two, cannot be swapped out.",
        recognised="The minimum that the loader needs, computed before anything starts, exceeds the available "
        "memory of the machine or of a control group. It is a warning if the loader needs most of this memory, "
        "or would need most of it once torch has page-locked all queued batches.",
        to_do="Try, in this order, prefetch_factor=2 or 1, fewer workers, smaller batches, and reading samples when "
        "they are needed (packed shards or memory-mapped files) instead of arrays in every worker. "
        "feedline.DataLoader limits queued batches to memory_budget=.",
        abstains="The size of a batch is unknown (--batch-mb), or /proc/meminfo could not be read.",
        example="needs 41.1 GB, but 38.0 GB is left.",
    ),
    priority=LOAD + 10,
    evaluate=_evaluate,
)
