# SPDX-License-Identifier: Apache-2.0
"""The script cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from ..rules import SCRIPT, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    if case.script is not None and case.script.problem:
        yield Found("error", (case.script.problem,))


CAUSE = Cause(
    page(
        "script_unreadable",
        "the script cannot be read",
        means="The script was not examined. Python would stop at the same line.",
        recognised="It does not exist, is not readable, or is not valid in the Python version that runs this command.",
        to_do="Fix the line, or run this command with the Python that runs the script.",
        example="train.py, line 3: invalid syntax.",
    ),
    turn=SCRIPT + 5,
    judge=_judge,
)
