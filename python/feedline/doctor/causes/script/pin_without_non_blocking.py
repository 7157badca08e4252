# SPDX-License-Identifier: Apache-2.0
"""Batches are page-locked, but copies are blocking."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for loop in analysis.script.loops if analysis.script is not None else ():
        pinned = [call for call in loop.loaders if call.get("pin_memory") is True]
        if len(pinned) == len(loop.loaders) and loop.copies and all(copy.non_blocking is False for copy in loop.copies):
            line = loop.copies[0].line
            of = f"from the loader in line {pinned[0].line} with pin_memory=True"
            yield Found("warning", (f"line {line}: a copy without non_blocking, {of}",), about={"line": line})


CAUSE = Cause(
    page(
        "pin_without_non_blocking",
        "batches are page-locked, but copies are blocking",
        means="pin_memory=True makes non-blocking copies possible, and non_blocking=True makes a copy "
        "non-blocking. pin_memory by itself costs a thread and memory, and the loop still waits. "
        "A thread of the main process, not the workers, copies batches to page-locked memory, so this is not "
        "zero-copy.",
        recognised="In a loop over a loader with pin_memory=True, no copy to the device is non_blocking.",
        to_do="batch.to(device, non_blocking=True).",
        example="line 33: a copy without non_blocking, from the loader in line 20 with pin_memory=True.",
    ),
    priority=SCRIPT + 100,
    evaluate=_evaluate,
)
