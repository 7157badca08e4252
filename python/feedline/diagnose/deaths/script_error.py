# SPDX-License-Identifier: Apache-2.0
"""The script raised an error outside its loader."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text


def _evaluate(run: DeadRun) -> Died | None:
    error = next(run.errors(), None)
    if error is None:
        return Died(f"the command ended with status {run.returncode}", (), ("Read the command's output above.",))
    return Died(
        f"the script raised {error.name}{error.where}",
        (raised_text(error),),
        ("Read the traceback above: the error is not one of the loader or its workers.",),
    )


DEATH = Death(
    page(
        "script_error",
        "the script raised an error",
        means="The run ended before its loop could be judged. The loader is not the cause.",
        recognised="An error ended a process of the run, and no other page describes it.",
        to_do="Read the traceback.",
        example="the script raised ValueError at train.py:40 in main().",
    ),
    priority=200,
    evaluate=_evaluate,
)
