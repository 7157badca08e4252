# SPDX-License-Identifier: Apache-2.0
"""Addresses are limited."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, gb, page

TIMES = Threshold(4, "times the memory: CUDA alone reserves as much as the memory of the machine and of all GPUs")


def _judge(case: Case) -> Iterator[Found]:
    limit, memory = case.machine.limits.address_space, case.machine.memory
    if limit is not None and memory.told and limit < TIMES * memory.physical:
        yield Found("warning", (f"{gb(limit)} of addresses, and the machine has {gb(memory.physical)} of memory",))


CAUSE = Cause(
    page(
        "address_space_limit",
        "addresses are limited",
        means="CUDA reserves far more addresses than memory, and memory-mapped datasets count in full: CUDA "
        "error: out of memory, or Cannot allocate memory, with memory in plenty. Login nodes of "
        "clusters set such limits.",
        recognised="ulimit -v against the memory of the machine and of its GPUs.",
        to_do="ulimit -v unlimited; on a cluster run within a job, not on the login node.",
        example="16.0 GB of addresses, and the machine has 64.0 GB of memory.",
    ),
    turn=MACHINE + 190,
    judge=_judge,
)
