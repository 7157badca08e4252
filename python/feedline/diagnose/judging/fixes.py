# SPDX-License-Identifier: Apache-2.0
"""What to change, in words: of torch's loaders, and of Feedline's, which have other arguments."""

from __future__ import annotations

from dataclasses import dataclass

from feedline.watching.intervals import GAIN
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Summary


@dataclass(frozen=True)
class Fix:
    """A sentence by whose loader it is. Called with a summary it gives the one for that run."""

    stock: str  # torch's, or the drop-in where the dataset's Python runs as it is
    own: str | None = None  # `feedline.open(...).loader(...)`; None: as for torch's
    lowered: str | None = None  # the drop-in where Feedline's threads make the batches; None: as for `own`

    def __call__(self, summary: Summary) -> str:
        if not summary.native:
            return self.stock
        own = self.stock if self.own is None else self.own
        return own if self.lowered is None or not is_lowered(summary) else self.lowered


def is_lowered(summary: Summary) -> bool:
    """Whether Feedline's threads make the batches of a `feedline.DataLoader`."""
    return summary.native and summary.loader.get("class") != "feedline.Loader"


def with_workers(workers: int | None, sentence: str) -> str:
    """A number of workers first, where that is the change to make, and then what else there is to do."""
    return sentence if workers is None else f"num_workers={workers}. {sentence}".rstrip()


def is_slower(summary: Summary, workers: int) -> bool:
    """Whether the present number was measured to give more than this one."""
    both = workers in summary.ladder.rungs and summary.workers in summary.ladder.rungs
    return both and summary.ladder.rungs[workers] < summary.ladder.rungs[summary.workers] / GAIN


def more_within_reach(summary: Summary) -> int | None:
    """The number of workers to be advised, of those that a prediction from this run is good for; None: none is."""
    return prediction.advised_workers(summary, prediction.within_reach(summary))
