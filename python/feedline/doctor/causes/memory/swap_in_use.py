# SPDX-License-Identifier: Apache-2.0
"""The machine is already swapping."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, gb, page

MUCH = Threshold(512 * 2**20, "size in bytes; smaller amounts are negligible")
LITTLE = Threshold(0.2, "share of the memory that is available; if more is available, nothing has to be swapped out")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    memory = analysis.machine.memory
    if memory.is_known and memory.swap_used > MUCH and memory.available < LITTLE * memory.physical:
        words = (
            f"{gb(memory.swap_used)} is swapped out, and {gb(memory.available)} of {gb(memory.physical)} is available"
        )
        yield Found("warning", (words,))


CAUSE = Cause(
    page(
        "swap_in_use",
        "the machine is already swapping",
        means="Swapped-out data must be read from disk before use; a loader that needs more "
        "memory causes more swapping.",
        recognised="Swap is in use, and little memory is available. Pages swapped out long ago are harmless if "
        "memory is plentiful.",
        to_do="End programs that use the memory, or plan with less: smaller prefetch_factor, fewer workers.",
        example="12.0 GB is swapped out, and 3.1 GB of 64.0 GB is available.",
    ),
    priority=MACHINE + 110,
    evaluate=_evaluate,
)
