# SPDX-License-Identifier: Apache-2.0
"""Something waits for the disks now."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, page

MUCH = Threshold(0.2, "of the time: as what is critical for diagnose, since it is not this run that waits")


def _judge(case: Case) -> Iterator[Found]:
    share = case.machine.io_pressure
    if share is not None and share >= MUCH:
        yield Found("warning", (f"in {share:.0%} of the last minute something waited for disks",))


CAUSE = Cause(
    page(
        "io_pressure",
        "something waits for the disks now",
        means="Another program keeps the disks busy: a run that reads from them shares what they give. That a "
        "disk is busy all the time alone says little, as NVMe takes many requests at once; this is "
        "about who waits.",
        recognised="The kernel's pressure figures (PSI) of the last minute.",
        to_do="Find it with feedline top, or wait for it, before figures of this run are believed.",
        abstains="The kernel does not count pressure.",
        example="in 45% of the last minute something waited for disks.",
    ),
    turn=MACHINE + 140,
    judge=_judge,
)
