# SPDX-License-Identifier: Apache-2.0
"""The kernel does not overcommit memory."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, gb, page

SMALL = Threshold(
    8 * 2**30, "size in bytes; a script with torch and CUDA commits about 5 GB, as does each of its workers"
)


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    left = analysis.machine.memory.commit_left
    if left is not None and left < SMALL:
        yield Found("warning", (f"vm.overcommit_memory is 2, and only {gb(left)} can still be committed",))


CAUSE = Cause(
    page(
        "commit_limit",
        "the kernel does not overcommit memory",
        means="With vm.overcommit_memory=2, a fork counts as if it would write to all memory of its parent. Starting "
        "workers fails with OSError: Cannot allocate memory, although most memory is free.",
        recognised="This setting is in effect, and the rest of the commit limit is smaller than a training script "
        "needs.",
        to_do="Run sysctl vm.overcommit_memory=0 as root, or use threads as workers: "
        "feedline.DataLoader(worker_method='thread').",
        example="vm.overcommit_memory is 2, and only 1.2 GB can still be committed.",
    ),
    priority=MACHINE + 210,
    evaluate=_evaluate,
)
