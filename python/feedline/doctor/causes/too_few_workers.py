# SPDX-License-Identifier: Apache-2.0
"""No worker, though there are CPUs for some."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import LOAD, Case, Cause, Found, page

SEVERAL = Threshold(4.0, "CPUs of a rank: with fewer, workers take the loop its own")


def _judge(case: Case) -> Iterator[Found]:
    usable = case.machine.cpus.threads // max(case.load.ranks, 1) if case.load is not None else 0
    if case.load is not None and case.load.workers == 0 and usable >= SEVERAL:
        yield Found("note", (f"num_workers=0 on {usable} usable CPUs",))


CAUSE = Cause(
    page(
        "too_few_workers",
        "no worker, though there are CPUs for some",
        means="With num_workers=0 the training loop makes each batch itself: the GPU waits for all of it. "
        "That is right where data is in memory and reading it only slicing, and a first measurement "
        "without options is worth having.",
        recognised="num_workers is 0 and several CPUs may be used by each rank.",
        to_do="num_workers as advised above the findings, with persistent_workers=True; feedline tune "
        "measures which number is best.",
        example="num_workers=0 on 8 usable CPUs.",
    ),
    turn=LOAD + 90,
    judge=_judge,
)
