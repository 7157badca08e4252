# SPDX-License-Identifier: Apache-2.0
"""The loop page-locks batches itself."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for loop in analysis.script.loops if analysis.script is not None else ():
        for copy in loop.copies:
            if copy.pinned_by_hand:
                yield Found("warning", (f"line {copy.line}: .pin_memory().to(...)",), about={"line": copy.line})


CAUSE = Cause(
    page(
        "pinned_by_hand",
        "the loop page-locks batches itself",
        means="x.pin_memory().to(device, non_blocking=True) copies on the CPU first, while the loop waits, "
        "and then to the GPU: both copies together can take twice the time of a plain copy.",
        recognised="A loop over a loader calls pin_memory() on a value that is moved to a device.",
        to_do="Use DataLoader(..., pin_memory=True), which page-locks in a separate thread, and batch.to(device, "
        "non_blocking=True).",
        example="line 33: .pin_memory().to(...).",
    ),
    priority=SCRIPT + 120,
    evaluate=_evaluate,
)
