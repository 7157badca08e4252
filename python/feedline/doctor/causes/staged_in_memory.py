# SPDX-License-Identifier: Apache-2.0
"""The dataset takes the memory that the run needs."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import STORAGE, Case, Cause, Found, gb, page

PART = Threshold(0.5, "of the memory that is left besides: workers and the page cache need it")


def _judge(case: Case) -> Iterator[Found]:
    source, memory = case.source, case.machine.memory
    if source is None or source.kind != "memory" or source.total_bytes is None or not memory.told:
        return
    if source.total_bytes > PART * memory.left:
        yield Found(
            "warning", (f"{source.name} holds {gb(source.total_bytes)} of memory, and {gb(memory.left)} are left",)
        )


CAUSE = Cause(
    page(
        "staged_in_memory",
        "the dataset takes the memory that the run needs",
        means="Files in /dev/shm and other tmpfs are memory, and cannot give way. The page cache keeps what "
        "is read often by itself, and gives way.",
        recognised="SOURCE is on tmpfs, and is large against what is left.",
        to_do="Leave it on a local disk: after the first epoch it is in the page cache as far as it fits.",
        example="/dev/shm/imagenet holds 40.0 GB of memory, and 20.0 GB are left.",
    ),
    turn=STORAGE + 60,
    judge=_judge,
)
