# SPDX-License-Identifier: Apache-2.0
"""Processes are waiting for the disks."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

MUCH = Threshold(
    0.2, "share of the time; diagnose calls the same level critical, but here other processes wait, not the run"
)


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    share = analysis.machine.io_pressure
    if share is not None and share >= MUCH:
        yield Found("warning", (f"for {share:.0%} of the last minute, a process waited for disks",))


CAUSE = Cause(
    page(
        "io_pressure",
        "processes are waiting for the disks",
        means="Another program keeps the disks busy, and a run that reads from them shares their bandwidth. "
        "Utilization by itself reveals little, because NVMe serves many requests at once; pressure is the time "
        "that processes wait.",
        recognised="The kernel's pressure figures (PSI) for the last minute are high.",
        to_do="Find the program with feedline top, or wait for it to end, before trusting measurements.",
        abstains="The kernel does not measure pressure.",
        example="for 45% of the last minute, a process waited for disks.",
    ),
    priority=MACHINE + 140,
    evaluate=_evaluate,
)
