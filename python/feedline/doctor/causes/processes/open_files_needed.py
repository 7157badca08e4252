# SPDX-License-Identifier: Apache-2.0
"""The planned loader needs more open files than are allowed."""

from __future__ import annotations

from collections.abc import Iterator

from ....machine.planned_load import open_files_of
from ...rules import LOAD, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    limit = analysis.machine.limits.open_files
    if analysis.load is not None and limit is not None and open_files_of(analysis.load) > limit:
        needed = f"{analysis.load.workers} workers need about {open_files_of(analysis.load):,} open files"
        yield Found("critical", (f"{needed}, but only {limit:,} are allowed",))


CAUSE = Cause(
    page(
        "open_files_needed",
        "the planned loader needs more open files than are allowed",
        means="torch passes each tensor as a file descriptor, which the main process keeps open while the tensor "
        "exists. Above the limit, the run fails with OSError: Too many open files, often after hours.",
        recognised="workers x (prefetch x tensors per batch + pipes) exceeds ulimit -n.",
        to_do="Set ulimit -n 65536 in the shell that starts the run (docker run --ulimit nofile=65536), or call "
        "torch.multiprocessing.set_sharing_strategy('file_system').",
        example="64 workers need about 1,100 open files, but only 1,024 are allowed.",
    ),
    priority=LOAD + 50,
    evaluate=_evaluate,
)
