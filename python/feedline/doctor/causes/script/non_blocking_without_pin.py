# SPDX-License-Identifier: Apache-2.0
"""non_blocking copies from memory that is not page-locked."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for loop in analysis.script.loops if analysis.script is not None else ():
        plain = [call for call in loop.loaders if call.get("pin_memory") is False]
        copies = [copy for copy in loop.copies if copy.non_blocking and not copy.pinned_by_hand]
        if plain and len(plain) == len(loop.loaders) and copies:
            words = (
                f"line {copies[0].line}: non_blocking=True, but the loader in line {plain[0].line} has no pin_memory"
            )
            yield Found("warning", (words,), about={"line": copies[0].line})


CAUSE = Cause(
    page(
        "non_blocking_without_pin",
        "non_blocking copies from memory that is not page-locked",
        means="The driver copies such memory piece by piece through a staging buffer, and the call waits for most of "
        "the copy, regardless of non_blocking. Moreover, a non-blocking copy overlaps the step only on a "
        "separate stream, one batch ahead, as with feedline.DataLoader(device='cuda').",
        recognised="A loop uses non_blocking=True with loaders without pin_memory.",
        to_do="DataLoader(..., pin_memory=True).",
        example="line 33: non_blocking=True, but the loader in line 20 has no pin_memory.",
    ),
    priority=SCRIPT + 110,
    evaluate=_evaluate,
)
