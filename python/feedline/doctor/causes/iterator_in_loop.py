# SPDX-License-Identifier: Apache-2.0
"""A loop creates a new iterator for each batch."""

from __future__ import annotations

from collections.abc import Iterator

from ..rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for place in analysis.script.iterators_in_loops if analysis.script is not None else ():
        yield Found("critical", (f"line {place.line}: {place.what} in a loop",), about={"line": place.line})


CAUSE = Cause(
    page(
        "iterator_in_loop",
        "a loop creates a new iterator for each batch",
        means="iter(loader) starts the workers and fills their queues; next() then uses one batch, "
        "and everything else is discarded. Each call also yields the start of a new order, not an "
        "epoch.",
        recognised="next(iter(loader)) in a loop, for a loader with workers.",
        to_do="Use for batch in loader, or create one iterator before the loop: it = iter(loader).",
        example="line 25: next(iter(loader)) in a loop.",
    ),
    priority=SCRIPT + 70,
    evaluate=_evaluate,
)
