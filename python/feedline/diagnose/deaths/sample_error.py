# SPDX-License-Identifier: Apache-2.0
"""The dataset or collate_fn raised an error."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text


def _evaluate(run: DeadRun) -> Died | None:
    error = next((one for one in run.errors() if one.worker is not None), None)
    if error is None and not run.crash.dead:
        error = next((one for one in run.errors() if one.is_of_loop), None)
    if error is None:
        return None
    return Died(
        f"the loader raised {error.name}{error.where}",
        (raised_text(error),),
        (
            f"Read the traceback above: the error is raised{error.where or ' by the loader'}, not in the loop.",
            "Run with num_workers=0 to debug the line in one process.",
            "If single samples are damaged, find them with `feedline verify` or `feedline inspect`.",
        ),
    )


DEATH = Death(
    page(
        "sample_error",
        "the dataset or collate_fn raised an error",
        means="An error in a worker ends the loop's process, in which torch raises it again.",
        recognised="The error that ended the run was raised by the loader or in one of its workers.",
        to_do="Read the worker's traceback, and run with num_workers=0.",
        example="the loader raised KeyError at train.py:12 in __getitem__() in worker 0.",
    ),
    priority=180,
    evaluate=_evaluate,
)
