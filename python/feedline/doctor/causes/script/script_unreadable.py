# SPDX-License-Identifier: Apache-2.0
"""The script cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    if analysis.script is not None and analysis.script.problem:
        yield Found("error", (analysis.script.problem,))


CAUSE = Cause(
    page(
        "script_unreadable",
        "the script cannot be read",
        means="The script was not examined. Python would also stop at this line.",
        recognised="The script does not exist, is not readable, or is not valid in the Python version that runs "
        "this command.",
        to_do="Fix the line, or run this command with the Python that runs the script.",
        example="train.py, line 3: invalid syntax.",
    ),
    priority=SCRIPT + 5,
    evaluate=_evaluate,
)
