# SPDX-License-Identifier: Apache-2.0
"""A loop creates a new iterator for each batch."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for location in analysis.script.iterators_in_loops if analysis.script is not None else ():
        yield Found("critical", (f"line {location.line}: {location.what} in a loop",), about={"line": location.line})


CAUSE = Cause(
    page(
        "iterator_in_loop",
        "a loop creates a new iterator for each batch",
        means="iter(loader) starts the workers and fills their queues; next() then uses one batch, and everything "
        "else is discarded. Each call also returns the first batch of a new order, so the loop does not cover "
        "an epoch.",
        recognised="The script calls next(iter(loader)) in a loop, for a loader with workers.",
        to_do="Use `for batch in loader`, or create one iterator before the loop: `it = iter(loader)`.",
        example="line 25: next(iter(loader)) in a loop.",
    ),
    priority=SCRIPT + 70,
    evaluate=_evaluate,
)
