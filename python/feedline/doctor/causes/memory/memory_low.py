# SPDX-License-Identifier: Apache-2.0
"""Little memory is available."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import BROKEN, Analysis, Cause, Found, gb, page

LEFT = Threshold(
    0.05,
    "share of the usable memory that is free; on a machine with 16 GB, an interpreter with torch needs about this much",
)


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    memory = analysis.machine.memory
    usable = min(memory.limit or memory.physical, memory.physical)
    if memory.is_known and memory.left < LEFT * usable:
        yield Found("critical", (f"{gb(memory.left)} of {gb(usable)} left",))


CAUSE = Cause(
    page(
        "memory_low",
        "little memory is left",
        means="If a loader needs more, the kernel kills a process. In a container this is the training script, "
        "which ends without a message.",
        recognised="The available memory, according to the machine and every control group of this process, is only "
        "a small share of the usable memory.",
        to_do="End other runs, raise the container's memory limit, or use fewer workers and prefetch_factor=1.",
        abstains="/proc/meminfo could not be read.",
        example="0.4 GB of 16.0 GB left.",
    ),
    priority=BROKEN + 40,
    evaluate=_evaluate,
)
