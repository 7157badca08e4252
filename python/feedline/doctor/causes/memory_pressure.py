# SPDX-License-Identifier: Apache-2.0
"""Everything waits for memory now."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, page

MUCH = Threshold(0.05, "of the time: as a note of diagnose")


def _judge(case: Case) -> Iterator[Found]:
    share = case.machine.memory_pressure
    if share is not None and share >= MUCH:
        yield Found("warning", (f"in {share:.0%} of the last minute all waited for memory",))


CAUSE = Cause(
    page(
        "memory_pressure",
        "everything waits for memory now",
        means="All processes stood still at once, until the kernel had found memory: the machine, or a "
        "container on it, is near its limit.",
        recognised="The kernel's pressure figures (PSI) of the last minute.",
        to_do="End other runs before this one, or plan with less memory.",
        abstains="The kernel does not count pressure.",
        example="in 12% of the last minute all waited for memory.",
    ),
    turn=MACHINE + 130,
    judge=_judge,
)
