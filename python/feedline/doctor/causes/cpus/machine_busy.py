# SPDX-License-Identifier: Apache-2.0
"""Other programs use the CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

MUCH = Threshold(1.25, "runnable threads per CPU")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    cpus = analysis.machine.cpus
    if cpus.load is not None and cpus.load > MUCH * cpus.online:
        yield Found("warning", (f"the load is {cpus.load:.1f} on {cpus.online} CPUs",))


CAUSE = Cause(
    page(
        "machine_busy",
        "other programs use the CPUs",
        means="Workers and the training loop share the CPUs with other programs, so measurements reveal little "
        "about the loader.",
        recognised="The load of the last minute is much higher than the number of CPUs of the machine.",
        to_do="Wait until the other programs end, or end them; feedline top lists them.",
        example="the load is 70.2 on 32 CPUs.",
    ),
    priority=MACHINE + 150,
    evaluate=_evaluate,
)
