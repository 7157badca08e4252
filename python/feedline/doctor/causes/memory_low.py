# SPDX-License-Identifier: Apache-2.0
"""Little memory is left."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..rules import BROKEN, Analysis, Cause, Found, gb, page

LEFT = Threshold(0.05, "of the usable memory, still free: on 16 GB, about the need of an interpreter with torch")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    memory = analysis.machine.memory
    usable = min(memory.limit or memory.physical, memory.physical)
    if memory.told and memory.left < LEFT * usable:
        yield Found("critical", (f"{gb(memory.left)} of {gb(usable)} left",))


CAUSE = Cause(
    page(
        "memory_low",
        "little memory is left",
        means="If a loader needs more, the kernel kills a process: in a container, the training "
        "script, without a message.",
        recognised="Memory left, according to the machine and every control group around this process, is below a "
        "share of the usable memory.",
        to_do="End other runs, raise the container's memory limit, or use fewer workers and prefetch_factor=1.",
        abstains="/proc/meminfo could not be read.",
        example="0.4 GB of 16.0 GB left.",
    ),
    priority=BROKEN + 40,
    evaluate=_evaluate,
)
