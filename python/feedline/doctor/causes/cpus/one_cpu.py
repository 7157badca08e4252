# SPDX-License-Identifier: Apache-2.0
"""Only one of many CPUs is usable."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import BROKEN, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    cpus = analysis.machine.cpus
    if len(cpus.allowed) == 1 and cpus.online > 1:
        yield Found("critical", (f"this process may run only on CPU {cpus.allowed[0]} of {cpus.online} CPUs",))


CAUSE = Cause(
    page(
        "one_cpu",
        "only one of many CPUs is usable",
        means="An affinity mask or a cpuset allows one CPU, which all workers and the training loop "
        "share. Launchers that bind each rank to one core cause this, and so do some settings of OpenMP and "
        "taskset.",
        recognised="The mask has one CPU, but the machine has several.",
        to_do="Pass --cpus-per-task=8 to Slurm or --bind-to none to mpirun; in a notebook, call "
        "os.sched_setaffinity(0, range(64)).",
        example="this process may run only on CPU 3 of 64 CPUs.",
    ),
    priority=BROKEN + 60,
    evaluate=_evaluate,
)
