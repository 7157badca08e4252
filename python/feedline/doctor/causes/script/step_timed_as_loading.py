# SPDX-License-Identifier: Apache-2.0
"""A clock in the training loop times loading and the step together."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for loop in analysis.script.loops if analysis.script is not None else ():
        if loop.timed is not None and all(call.workers != 0 for call in loop.loaders):
            yield Found("note", (f"line {loop.timed}: this clock also times the step",), about={"line": loop.timed})


CAUSE = Cause(
    page(
        "step_timed_as_loading",
        "a clock in the training loop times loading and the step together",
        means="With workers, loading and the step overlap, so the time of an iteration is not their sum, and does not "
        "show which of them is slower. The wait for data is the time in next(loader), between the end of a step and "
        "the next batch. The first workers x prefetch_factor batches of an epoch were loaded in advance: leave them "
        "out. GPU work is asynchronous: a clock without torch.cuda.synchronize() does not include it.",
        recognised="A loop over a loader with workers reads time.time() or another clock, and only after it has used "
        "the batch.",
        to_do="Run feedline diagnose -- SCRIPT, which measures the wait and the step separately.",
        example="line 40: this clock also times the step.",
    ),
    priority=SCRIPT + 170,
    evaluate=_evaluate,
)
