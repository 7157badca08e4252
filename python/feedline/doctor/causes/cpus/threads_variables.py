# SPDX-License-Identifier: Apache-2.0
"""OMP_NUM_THREADS exceeds the usable CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

MOST_DIGITS = Threshold(7, "number of digits of a number of threads; longer values are not valid")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        value = analysis.machine.environment.get(name, "").split(",")[0]
        if value.isdecimal() and len(value) < MOST_DIGITS and int(value) > analysis.machine.cpus.threads:
            yield Found("warning", (f"{name}={value} on {analysis.machine.cpus.threads} usable CPUs",))
            return


CAUSE = Cause(
    page(
        "threads_variables",
        "OMP_NUM_THREADS exceeds the usable CPUs",
        means="NumPy and torch start as many threads as the variable specifies, in the main process and in every "
        "worker that computes with these libraries, and the threads compete for the CPUs.",
        recognised="OMP_NUM_THREADS or MKL_NUM_THREADS is larger than the number of usable CPUs.",
        to_do="Unset the variable, or set it to the number of usable CPUs, and to 1 in workers (torch does so itself).",
        example="OMP_NUM_THREADS=64 on 8 usable CPUs.",
    ),
    priority=MACHINE + 80,
    evaluate=_evaluate,
)
