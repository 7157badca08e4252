# SPDX-License-Identifier: Apache-2.0
"""Samples of one batch have different shapes."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text

_TEXT = (
    r"stack expects each tensor to be equal size|each element in list of batch should be of equal size|"
    r"Trying to resize storage that is not resizable"  # in workers, which stack into shared memory
)


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error(_TEXT)
    if error is None:
        return None
    return Died(
        "the samples of one batch have different shapes",
        (raised_text(error),),
        (
            "Resize or crop every sample to one size in the dataset's transform.",
            "If sizes must differ, pass a collate_fn that pads samples or returns them as a list.",
            "If only few samples differ, find them: `feedline inspect` lists shapes, such as greyscale images.",
        ),
    )


DEATH = Death(
    page(
        "sample_shapes_differ",
        "samples of one batch have different shapes",
        means="torch's default collate_fn stacks samples, so their shapes must be equal.",
        recognised="The run ended with torch's error about samples of different sizes.",
        to_do="Resize samples, or pass a collate_fn that pads them.",
        example="RuntimeError: stack expects each tensor to be equal size.",
    ),
    priority=170,
    evaluate=_evaluate,
)
