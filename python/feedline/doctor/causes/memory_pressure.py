# SPDX-License-Identifier: Apache-2.0
"""All processes are waiting for memory."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..rules import MACHINE, Analysis, Cause, Found, page

MUCH = Threshold(0.05, "of the time: the threshold of a note in diagnose")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    share = analysis.machine.memory_pressure
    if share is not None and share >= MUCH:
        yield Found("warning", (f"{share:.0%} of the last minute, all processes waited for memory",))


CAUSE = Cause(
    page(
        "memory_pressure",
        "all processes are waiting for memory",
        means="All processes stalled at the same time until the kernel had reclaimed memory: the machine, or a "
        "container on it, is near its limit.",
        recognised="The kernel's pressure figures (PSI) of the last minute.",
        to_do="End other runs first, or plan with less memory.",
        abstains="The kernel does not measure pressure.",
        example="12% of the last minute, all processes waited for memory.",
    ),
    priority=MACHINE + 130,
    evaluate=_evaluate,
)
