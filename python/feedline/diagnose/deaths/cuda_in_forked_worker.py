# SPDX-License-Identifier: Apache-2.0
"""A forked worker uses the GPU."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text

_TEXT = r"re-initialize (CUDA|HIP|XPU) in forked subprocess|CUDA error: initialization error"


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error(_TEXT)
    if error is None:
        return None
    return Died(
        f"a forked worker used the GPU{error.where}",
        (raised_text(error),),
        (
            "Keep the dataset, its transforms and collate_fn on the CPU, and copy batches to the GPU in the loop.",
            'If workers must use the GPU, set multiprocessing_context="spawn".',
        ),
    )


DEATH = Death(
    page(
        "cuda_in_forked_worker",
        "a forked worker uses the GPU",
        means="A process that was forked after CUDA was initialised cannot use CUDA.",
        recognised="The run ended with torch's error about CUDA in a forked process.",
        to_do="Use the GPU only in the loop's process; otherwise start workers with spawn.",
        example="RuntimeError: Cannot re-initialize CUDA in forked subprocess.",
    ),
    priority=30,
    evaluate=_evaluate,
)
