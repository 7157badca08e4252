# SPDX-License-Identifier: Apache-2.0
"""Processes of this container were killed for memory."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import MACHINE, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    kills = case.machine.memory.oom_kills
    if kills:
        words = f"{kills} process{'es' if kills > 1 else ''} of this control group were killed for lack of memory"
        yield Found("warning", (words,))


CAUSE = Cause(
    page(
        "oom_kills",
        "processes of this container were killed for memory",
        means="The kernel kills without a word to the program: a worker is gone, and torch says killed by "
        "signal: Killed.",
        recognised="The kernel's count for this process's own control group, since it was made.",
        to_do="Raise the container's memory limit, or plan with less; dmesg and memory.events tell when.",
        example="3 processes of this control group were killed for lack of memory.",
    ),
    turn=MACHINE + 120,
    judge=_judge,
)
