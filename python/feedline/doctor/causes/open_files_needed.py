# SPDX-License-Identifier: Apache-2.0
"""The planned loader needs more open files than are allowed."""

from __future__ import annotations

from collections.abc import Iterator

from ...machine.planned_load import open_files_of
from ..case import LOAD, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    limit = case.machine.limits.open_files
    if case.load is not None and limit is not None and open_files_of(case.load) > limit:
        needed = f"{case.load.workers} workers need some {open_files_of(case.load):,} open files"
        yield Found("critical", (f"{needed}, and {limit:,} are allowed",))


CAUSE = Cause(
    page(
        "open_files_needed",
        "the planned loader needs more open files than are allowed",
        means="torch hands each tensor over as a file descriptor, which the main process keeps open while the "
        "tensor lives. Beyond the limit comes OSError: Too many open files, often after hours.",
        recognised="workers x (prefetch x tensors of a batch + pipes) against ulimit -n.",
        to_do="ulimit -n 65536 in the shell that starts the run (docker run --ulimit nofile=65536), or "
        "torch.multiprocessing.set_sharing_strategy('file_system').",
        example="64 workers need some 1,100 open files, and 1,024 are allowed.",
    ),
    turn=LOAD + 50,
    judge=_judge,
)
