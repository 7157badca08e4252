# SPDX-License-Identifier: Apache-2.0
"""Workers start again in every epoch."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import SCRIPT, Case, Cause, Found, page

MANY = Threshold(10, "epochs: with fewer the pauses hardly count")


def _judge(case: Case) -> Iterator[Found]:
    for loop in case.script.loops if case.script is not None else ():
        for call in loop.loaders:
            starts = bool(call.workers) and call.get("persistent_workers") is False
            if starts and loop.epochs is not None and loop.epochs > MANY:
                of = f"the workers of the loader in line {call.line} start in each"
                words = f"line {loop.line}: {loop.epochs} epochs, and {of}"
                yield Found("note", (words,), about={"line": loop.line})


CAUSE = Cause(
    page(
        "workers_not_kept",
        "workers start again in every epoch",
        means="Without persistent_workers=True each epoch ends its workers and starts them anew, with all "
        "that the dataset does at its beginning. How much that is depends on it: from a tenth of a "
        "second to minutes.",
        recognised="A loader with workers that a loop of more than ten epochs reads, and persistent_workers is not "
        "given.",
        to_do="persistent_workers=True; then the dataset may not change between epochs. feedline diagnose "
        "measures the pause (epoch_border).",
        example="line 28: 90 epochs, and the workers of the loader in line 20 start in each.",
    ),
    turn=SCRIPT + 150,
    judge=_judge,
)
