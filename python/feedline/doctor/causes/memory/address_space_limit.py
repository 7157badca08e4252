# SPDX-License-Identifier: Apache-2.0
"""The address space is limited."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, gb, page

TIMES = Threshold(
    4,
    "ratio of the limit to the memory; CUDA alone reserves as much address space as the machine and all GPUs "
    "have memory",
)


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    limit, memory = analysis.machine.limits.address_space, analysis.machine.memory
    if limit is not None and memory.is_known and limit < TIMES * memory.physical:
        yield Found(
            "warning",
            (f"the address space is limited to {gb(limit)}, but the machine has {gb(memory.physical)} of memory",),
        )


CAUSE = Cause(
    page(
        "address_space_limit",
        "the address space is limited",
        means="CUDA reserves far more address space than memory, and memory-mapped datasets count in full. Runs fail "
        "with CUDA error: out of memory, or Cannot allocate memory, although enough memory is free. Login "
        "nodes of clusters set such limits.",
        recognised="ulimit -v is compared with the memory of the machine and of its GPUs.",
        to_do="Set ulimit -v unlimited; on a cluster, run in a job, not on the login node.",
        example="the address space is limited to 16.0 GB, but the machine has 64.0 GB of memory.",
    ),
    priority=MACHINE + 190,
    evaluate=_evaluate,
)
