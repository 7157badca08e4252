# SPDX-License-Identifier: Apache-2.0
"""The machine swaps already."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, gb, page

MUCH = Threshold(512 * 2**20, "bytes: less was hardly ever in use")
LITTLE = Threshold(0.2, "of the memory, available: beyond, nothing has to be swapped out now")


def _judge(case: Case) -> Iterator[Found]:
    memory = case.machine.memory
    if memory.told and memory.swap_used > MUCH and memory.available < LITTLE * memory.physical:
        words = f"{gb(memory.swap_used)} are swapped out, and {gb(memory.available)} of {gb(memory.physical)} available"
        yield Found("warning", (words,))


CAUSE = Cause(
    page(
        "swap_in_use",
        "the machine swaps already",
        means="What is swapped out has to come back from disk before it can be used; a loader that takes more "
        "memory pushes out more.",
        recognised="Swap in use together with little memory that is available. Pages that were swapped out long "
        "ago and memory in plenty are no fault.",
        to_do="End what takes the memory, or plan with less: smaller prefetch_factor, fewer workers.",
        example="12.0 GB are swapped out, and 3.1 GB of 64.0 GB available.",
    ),
    turn=MACHINE + 110,
    judge=_judge,
)
