# SPDX-License-Identifier: Apache-2.0
"""The kernel promises no more memory than it has."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, gb, page

SMALL = Threshold(8 * 2**30, "bytes: a script with torch and CUDA counts some 5 GB, and each of its workers as much")


def _judge(case: Case) -> Iterator[Found]:
    left = case.machine.memory.commit_left
    if left is not None and left < SMALL:
        yield Found("warning", (f"vm.overcommit_memory is 2, and {gb(left)} may still be promised",))


CAUSE = Cause(
    page(
        "commit_limit",
        "the kernel promises no more memory than it has",
        means="With vm.overcommit_memory=2 a fork counts as if it would write to all memory of its parent: "
        "OSError: Cannot allocate memory when workers start, though most of it is free.",
        recognised="That setting, and a commit limit with less left than a training script takes.",
        to_do="sysctl vm.overcommit_memory=0 (root), or workers as threads: "
        "feedline.DataLoader(worker_method='thread').",
        example="1.2 GB may still be promised.",
    ),
    turn=MACHINE + 210,
    judge=_judge,
)
