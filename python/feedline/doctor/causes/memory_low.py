# SPDX-License-Identifier: Apache-2.0
"""Hardly any memory is left."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import BROKEN, Case, Cause, Found, gb, page

LEFT = Threshold(
    0.05, "of the memory that may be used, still free: an interpreter with torch takes about that on 16 GB"
)


def _judge(case: Case) -> Iterator[Found]:
    memory = case.machine.memory
    usable = min(memory.limit or memory.physical, memory.physical)
    if memory.told and memory.left < LEFT * usable:
        yield Found("critical", (f"{gb(memory.left)} of {gb(usable)} are left",))


CAUSE = Cause(
    page(
        "memory_low",
        "hardly any memory is left",
        means="What a loader takes beyond it makes the kernel kill a process: in a container the training "
        "script, with no message of its own.",
        recognised="What is left, by the machine and by every control group around this process, is below a share "
        "of what may be used.",
        to_do="End other runs, raise the container's memory limit, or use fewer workers and prefetch_factor=1.",
        abstains="/proc/meminfo could not be read.",
        example="0.4 GB of 16.0 GB are left.",
    ),
    turn=BROKEN + 40,
    judge=_judge,
)
