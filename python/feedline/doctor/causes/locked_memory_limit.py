# SPDX-License-Identifier: Apache-2.0
"""InfiniBand, and little memory may be locked."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, gb, page

SMALL = Threshold(1 * 2**30, "bytes: buffers of NCCL for a few peers")


def _judge(case: Case) -> Iterator[Found]:
    limit = case.machine.limits.locked_bytes
    if case.machine.has_infiniband and limit is not None and limit < SMALL:
        yield Found("warning", (f"{gb(limit)} may be locked, and there are InfiniBand devices",))


CAUSE = Cause(
    page(
        "locked_memory_limit",
        "InfiniBand, and little memory may be locked",
        means="NCCL and MPI lock the memory that the network card reads: ibv_reg_mr failed, or a silent fall "
        "back to TCP. Page-locked batches of CUDA do not count against this limit; they count as memory "
        "of the container, and cannot be swapped out.",
        recognised="InfiniBand devices are there, and ulimit -l is a small number.",
        to_do="ulimit -l unlimited; docker run --ulimit memlock=-1.",
        example="8 MB may be locked, and there are InfiniBand devices.",
    ),
    turn=MACHINE + 200,
    judge=_judge,
)
