# SPDX-License-Identifier: Apache-2.0
"""All processes are waiting for memory."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

MUCH = Threshold(0.05, "share of the time; diagnose reports a note at the same threshold")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    share = analysis.machine.memory_pressure
    if share is not None and share >= MUCH:
        yield Found("warning", (f"for {share:.0%} of the last minute, all processes waited for memory",))


CAUSE = Cause(
    page(
        "memory_pressure",
        "all processes are waiting for memory",
        means="All processes stalled at the same time until the kernel had reclaimed memory: the machine, or a "
        "container on it, is near its limit.",
        recognised="The kernel's pressure figures (PSI) for the last minute are high.",
        to_do="End other runs first, or plan with less memory.",
        abstains="The kernel does not measure pressure.",
        example="for 12% of the last minute, all processes waited for memory.",
    ),
    priority=MACHINE + 130,
    evaluate=_evaluate,
)
