# SPDX-License-Identifier: Apache-2.0
"""Texts of suggested fixes, for torch's and for Feedline's loaders, which have different arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass

from feedline.profiler.intervals import GAIN
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import DROP_IN, Summary


@dataclass(frozen=True)
class Fix:
    """A sentence that depends on the kind of loader. Call the object with a summary to get the sentence for that
    run.
    """

    stock: str  # torch's, or the drop-in if it runs the dataset's Python code unchanged
    own: str | None = None  # `feedline.open(...).loader(...)`; None to use torch's
    lowered: str | None = None  # the drop-in if Feedline's threads produce the batches; None to use `own`
    without_drop_in: str | None = None  # torch's if the drop-in was measured not to help; None to use `stock`

    def __call__(self, summary: Summary) -> str:
        if not summary.native:
            return self.stock if self.without_drop_in is None or drop_in_may_help(summary) else self.without_drop_in
        own = self.stock if self.own is None else self.own
        return own if self.lowered is None or not is_lowered(summary) else self.lowered


def is_lowered(summary: Summary) -> bool:
    """Whether Feedline's threads produce the batches of a `feedline.DataLoader`."""
    return summary.native and summary.loader.get("class") != "feedline.Loader"


def drop_in_may_help(summary: Summary) -> bool:
    """Whether Feedline's DataLoader may make the run faster: no measurement excludes it."""
    return not summary.native and summary.ladder.tried.get(DROP_IN, (0.0, 0.0, math.inf))[2] > GAIN


def with_workers(workers: int | None, sentence: str) -> str:
    """Prepends a new number of workers, if any, to the rest of the fix."""
    return sentence if workers is None else f"num_workers={workers}. {sentence}".rstrip()


def is_slower(summary: Summary, workers: int) -> bool:
    """Whether the current number of workers was measured to be faster than `workers`."""
    both = workers in summary.ladder.rungs and summary.workers in summary.ladder.rungs
    return both and summary.ladder.rungs[workers] < summary.ladder.rungs[summary.workers] / GAIN


def more_within_reach(summary: Summary) -> int | None:
    """Returns the recommended number of workers, within the range of reliable predictions; None if no other number is
    better.
    """
    return prediction.advised_workers(summary, prediction.within_reach(summary))
