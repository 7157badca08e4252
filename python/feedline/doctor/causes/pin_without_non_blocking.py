# SPDX-License-Identifier: Apache-2.0
"""Page-locked batches, and copies that wait."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import SCRIPT, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    for loop in case.script.loops if case.script is not None else ():
        pinned = [call for call in loop.loaders if call.get("pin_memory") is True]
        if len(pinned) == len(loop.loaders) and loop.copies and all(copy.non_blocking is False for copy in loop.copies):
            line = loop.copies[0].line
            of = f"of the loader in line {pinned[0].line} with pin_memory=True"
            yield Found("warning", (f"line {line}: a copy without non_blocking, {of}",), about={"line": line})


CAUSE = Cause(
    page(
        "pin_without_non_blocking",
        "page-locked batches, and copies that wait",
        means="pin_memory=True makes a copy that the loop need not wait for possible; non_blocking=True is "
        "what makes it one. Alone, the first costs a thread and memory, and the loop waits as before. "
        "Batches are locked by a thread of the main process, not by workers.",
        recognised="A loop over a loader with pin_memory=True whose copies to the device are all without non_blocking.",
        to_do="batch.to(device, non_blocking=True).",
        example="line 33: .to(device) without non_blocking, of the loader in line 20 with pin_memory=True.",
    ),
    turn=SCRIPT + 100,
    judge=_judge,
)
