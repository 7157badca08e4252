# SPDX-License-Identifier: Apache-2.0
"""Workers did not deliver a batch within the loader's timeout."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error(r"DataLoader timed out after")
    if error is None:
        return None
    return Died(
        "the workers did not deliver a batch within the loader's timeout",
        (raised_text(error),),
        (
            "See what workers do: `py-spy dump --pid PID` of a worker, or run with num_workers=0.",
            "If a worker hangs at the first batch, a lock was held at the fork: start workers before threads, or set "
            'multiprocessing_context="spawn".',
            "If samples are just slow, raise timeout=, or set a separate timeout for network reads.",
        ),
    )


DEATH = Death(
    page(
        "worker_timeout",
        "the workers did not deliver a batch in time",
        means="The loader's `timeout` ended. A worker hangs in a lock or a network read, or samples are slow.",
        recognised="The run ended with the loader's timeout error.",
        to_do="Look at the stacks of the workers, then change the start method or the timeout.",
        example="RuntimeError: DataLoader timed out after 30 seconds.",
    ),
    priority=160,
    evaluate=_evaluate,
)
