# SPDX-License-Identifier: Apache-2.0
"""The address space is limited."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..rules import MACHINE, Analysis, Cause, Found, gb, page

TIMES = Threshold(4, "times the memory: CUDA alone reserves as much as the machine and all GPUs have")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    limit, memory = analysis.machine.limits.address_space, analysis.machine.memory
    if limit is not None and memory.told and limit < TIMES * memory.physical:
        yield Found("warning", (f"address space limited to {gb(limit)}, machine memory is {gb(memory.physical)}",))


CAUSE = Cause(
    page(
        "address_space_limit",
        "the address space is limited",
        means="CUDA reserves far more address space than memory, and memory-mapped datasets count in full: CUDA "
        "error: out of memory, or Cannot allocate memory, despite plenty of memory. Login nodes of "
        "clusters set such limits.",
        recognised="Compares ulimit -v with the memory of the machine and of its GPUs.",
        to_do="ulimit -v unlimited; on a cluster, run in a job, not on the login node.",
        example="address space limited to 16.0 GB, machine memory is 64.0 GB.",
    ),
    priority=MACHINE + 190,
    evaluate=_evaluate,
)
