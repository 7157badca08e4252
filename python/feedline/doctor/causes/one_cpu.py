# SPDX-License-Identifier: Apache-2.0
"""Only one CPU of many may be used."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import BROKEN, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    cpus = case.machine.cpus
    if len(cpus.allowed) == 1 and cpus.online > 1:
        yield Found("critical", (f"this process may run on CPU {cpus.allowed[0]} alone, of {cpus.online}",))


CAUSE = Cause(
    page(
        "one_cpu",
        "only one CPU of many may be used",
        means="An affinity mask or a cpuset leaves one CPU: all workers and the training loop take turns on "
        "it. Launchers that bind each rank to one core do it, and so do some settings of OpenMP and "
        "taskset.",
        recognised="The mask has one CPU, and the machine several.",
        to_do="Slurm: --cpus-per-task=8; mpirun --bind-to none; in a notebook os.sched_setaffinity(0, range(64)).",
        example="this process may run on CPU 3 alone, of 64.",
    ),
    turn=BROKEN + 60,
    judge=_judge,
)
