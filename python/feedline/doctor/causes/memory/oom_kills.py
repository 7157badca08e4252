# SPDX-License-Identifier: Apache-2.0
"""Processes in this container were killed because memory ran out."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import MACHINE, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    kills = analysis.machine.memory.oom_kills
    if kills:
        words = f"{kills} process{'es' if kills > 1 else ''} of this control group were killed because memory ran out"
        yield Found("warning", (words,))


CAUSE = Cause(
    page(
        "oom_kills",
        "processes in this container were killed because memory ran out",
        means="The kernel kills a process without a message: a worker disappears, and torch reports killed by "
        "signal: Killed.",
        recognised="The kernel counts the processes killed in a control group; this process's group has a count "
        "above 0.",
        to_do="Raise the container's memory limit, or plan with less; see dmesg and memory.events.",
        example="3 processes of this control group were killed because memory ran out.",
    ),
    priority=MACHINE + 120,
    evaluate=_evaluate,
)
