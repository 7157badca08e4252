# SPDX-License-Identifier: Apache-2.0
"""The machine has InfiniBand, but a low limit on locked memory."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, gb, page

SMALL = Threshold(1 * 2**30, "size in bytes, enough for NCCL's buffers for a few peers")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    limit = analysis.machine.limits.locked_bytes
    if analysis.machine.has_infiniband and limit is not None and limit < SMALL:
        yield Found("warning", (f"only {gb(limit)} of memory can be locked, but there are InfiniBand devices",))


CAUSE = Cause(
    page(
        "locked_memory_limit",
        "the limit on locked memory is low for InfiniBand",
        means="NCCL and MPI lock the memory that the network card reads: with a low limit, ibv_reg_mr fails, or "
        "they silently fall back to TCP. CUDA's page-locked batches do not count against this limit, but count "
        "as memory of the container that cannot be swapped out.",
        recognised="The machine has InfiniBand devices, and ulimit -l is low.",
        to_do="Set ulimit -l unlimited, or use docker run --ulimit memlock=-1.",
        example="only 8 MB of memory can be locked, but the machine has InfiniBand devices.",
    ),
    priority=MACHINE + 200,
    evaluate=_evaluate,
)
