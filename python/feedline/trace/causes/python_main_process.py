# SPDX-License-Identifier: Apache-2.0
"""The training process loads batches itself, between the steps."""

from __future__ import annotations

from ...findings import Entry, Threshold
from ..rules import Analysis, Cause

LEAST = Threshold(0.5, "minimum fraction of the wait that workers save with a GPU")
LEAST_ON_CPU = Threshold(
    0.2, "minimum fraction of the wait that workers save without a GPU, as they compete with operators for cores"
)


def _evaluate(analysis: Analysis) -> None:
    if not len(analysis.steps.loader) or not analysis.loads_in_the_loop:
        return
    least = LEAST if analysis.device is not None else LEAST_ON_CPU
    analysis.findings.add(
        "python_main_process",
        analysis.steps.loader,
        0.95,
        [
            *analysis.loader_evidence,
            "the iterator is _SingleProcessDataLoaderIter: num_workers=0 loads batches within the loop",
        ],
        'set num_workers="auto" with feedline.DataLoader, or num_workers of at least 2',
        gained=(least, 1.0),
    )


CAUSE = Cause(
    Entry(
        code="python_main_process",
        verb="trace",
        title="the training process loads batches itself, between the steps",
        means="With `num_workers=0`, the iterator produces each batch inside `next()`, while the GPU is idle.",
        recognised="Uses the class of the iterator, as recorded by torch's profiler, and the time inside its `next()`.",
        to_do="Load in worker processes.",
        abstains="The trace contains no call to a loader.",
        example="the loop was in the loader's next() for 69.30 ms of a step's 174.83 ms (40%).",
    ),
    priority=10,
    evaluate=_evaluate,
)
