# SPDX-License-Identifier: Apache-2.0
"""A worker or rank ended with an exit status, without an error that the loop could show."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text


def _evaluate(run: DeadRun) -> Died | None:
    dead = next((one for one in run.crash.dead if one.exit > 0), None)
    if dead is None:
        return None
    own = next((one for one in run.crash.fatal if one.get("pid") == dead.pid), None)
    error = next(run.errors(), None)
    raised = (raised_text(error),) if error is not None and own is None else ()
    return Died(
        f"{dead.name} ended with exit status {dead.exit}",
        (f"{dead.name} ended with exit status {dead.exit}", *raised),
        (
            "Look for sys.exit() or os._exit() in the dataset, and for a library that ends the process.",
            "Read the worker's own output above: it may have printed an error before it ended.",
            "Run with num_workers=0 to see the error in the loop's process.",
        ),
    )


DEATH = Death(
    page(
        "worker_exit",
        "a worker or rank exited with an error status, which ended the run",
        means="A worker must not end before its loader. A rank that ends with a status other than 0 ends all ranks.",
        recognised="A worker or rank ended with a positive exit status, and its error was not recorded.",
        to_do="Find the call that ends the process.",
        example="worker 1 (pid 4711) ended with exit status 3.",
    ),
    priority=190,
    evaluate=_evaluate,
)
