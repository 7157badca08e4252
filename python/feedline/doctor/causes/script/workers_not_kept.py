# SPDX-License-Identifier: Apache-2.0
"""Workers restart every epoch."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import SCRIPT, Analysis, Cause, Found, page

MANY = Threshold(10, "number of epochs; with fewer epochs, the pauses hardly matter")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for loop in analysis.script.loops if analysis.script is not None else ():
        for call in loop.loaders:
            starts = bool(call.workers) and call.get("persistent_workers") is False
            if starts and loop.epochs is not None and loop.epochs > MANY:
                of = f"the workers of the loader in line {call.line} restart in each"
                words = f"line {loop.line}: {loop.epochs} epochs, and {of}"
                yield Found("note", (words,), about={"line": loop.line})


CAUSE = Cause(
    page(
        "workers_not_kept",
        "workers restart every epoch",
        means="Without persistent_workers=True, each epoch stops its workers and starts new workers, including "
        "the dataset's initialization. A restart takes from 100 ms "
        "to minutes.",
        recognised="A loop runs more than ten epochs over a loader with workers, and persistent_workers is not given.",
        to_do="Pass persistent_workers=True; the dataset must then not change between epochs. feedline diagnose "
        "measures the pause (epoch_border).",
        example="line 28: 90 epochs, and the workers of the loader in line 20 restart in each.",
    ),
    priority=SCRIPT + 150,
    evaluate=_evaluate,
)
