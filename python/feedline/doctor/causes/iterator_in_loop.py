# SPDX-License-Identifier: Apache-2.0
"""A loop makes a new iterator for each batch."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import SCRIPT, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    for place in case.script.iterators_in_loops if case.script is not None else ():
        yield Found("critical", (f"line {place.line}: {place.what} within a loop",), about={"line": place.line})


CAUSE = Cause(
    page(
        "iterator_in_loop",
        "a loop makes a new iterator for each batch",
        means="iter(loader) starts the workers and fills their queues; for the one batch that next() takes, "
        "all of that is thrown away again. It also gives the beginning of an order each time, not an "
        "epoch.",
        recognised="next(iter(loader)) within a loop, of a loader with workers.",
        to_do="for batch in loader: or keep one iterator: it = iter(loader) before the loop.",
        example="line 25: next(iter(loader)) within a loop.",
    ),
    turn=SCRIPT + 70,
    judge=_judge,
)
