# SPDX-License-Identifier: Apache-2.0
"""Few processes and threads may be started."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, page

FEW = Threshold(
    512, "processes and threads of a user: 8 workers with 16 threads each are 128, beside a desktop or a shell"
)


def _judge(case: Case) -> Iterator[Found]:
    limit = case.machine.limits.processes
    if limit is not None and limit < FEW:
        yield Found("warning", (f"{limit} processes and threads may be started",))


CAUSE = Cause(
    page(
        "processes_low",
        "few processes and threads may be started",
        means="Each worker starts threads of its own, and all of the user's count: BlockingIOError or can't "
        "start new thread.",
        recognised="ulimit -u below a number that loaders and the threads of numerical libraries reach.",
        to_do="ulimit -u 4096, or ask the administrator; OMP_NUM_THREADS=1 in workers needs fewer.",
        example="128 processes and threads may be started.",
    ),
    turn=MACHINE + 180,
    judge=_judge,
)
