# SPDX-License-Identifier: Apache-2.0
"""A worker starts processes, which daemonic processes must not do."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error("daemonic processes are not allowed to have children")
    if error is None:
        return None
    return Died(
        f"a worker started child processes{error.where}",
        (raised_text(error),),
        (
            "Remove the pool, process or nested DataLoader from the dataset: the loader's workers are the pool. Raise "
            "num_workers instead.",
            "If one sample has several parts to wait for, use concurrent.futures.ThreadPoolExecutor, created once per "
            "worker.",
        ),
    )


DEATH = Death(
    page(
        "daemonic_children",
        "a worker starts child processes",
        means="A loader's workers are daemonic processes, which multiprocessing does not allow to have children.",
        recognised="The run ended with multiprocessing's AssertionError about daemonic processes.",
        to_do="Use the loader's workers as the only pool.",
        example="AssertionError: daemonic processes are not allowed to have children.",
    ),
    priority=100,
    evaluate=_evaluate,
)
