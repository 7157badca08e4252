# SPDX-License-Identifier: Apache-2.0
"""The limit on processes and threads is low."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

FEW = Threshold(
    512, "number of processes and threads of a user; 8 workers with 16 threads each are 128, plus the desktop or shell"
)


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    limit = analysis.machine.limits.processes
    if limit is not None and limit < FEW:
        yield Found("warning", (f"only {limit} processes and threads can be started",))


CAUSE = Cause(
    page(
        "processes_low",
        "the limit on processes and threads is low",
        means="Each worker starts threads, and all of the user's threads count. Above the limit, runs fail with "
        "`BlockingIOError` or `can't start new thread`.",
        recognised="ulimit -u is below the number that loaders and numerical libraries may reach.",
        to_do="Raise the limit with ulimit -u 4096, or ask the administrator; OMP_NUM_THREADS=1 reduces the number of "
        "threads.",
        example="only 128 processes and threads can be started.",
    ),
    priority=MACHINE + 180,
    evaluate=_evaluate,
)
