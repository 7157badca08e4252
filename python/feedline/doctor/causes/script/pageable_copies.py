# SPDX-License-Identifier: Apache-2.0
"""Batches are neither page-locked nor copied without waiting."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    if not analysis.wants_gpu:
        return
    for loop in analysis.script.loops if analysis.script is not None else ():
        pageable = not any("pin_memory" in call.arguments or call.is_open or call.is_feedline for call in loop.loaders)
        if pageable and loop.copies and all(copy.non_blocking is False for copy in loop.copies):
            line = loop.copies[0].line
            of = f"from the loader in line {loop.loaders[0].line} without pin_memory"
            yield Found("note", (f"line {line}: a copy without non_blocking, {of}",), about={"line": line})


CAUSE = Cause(
    page(
        "pageable_copies",
        "batches are neither page-locked nor copied without waiting",
        means="From pageable memory, the driver first copies a batch into its own buffer, and the loop waits for both "
        "copies. With pin_memory=True and non_blocking=True, the loop continues during the copy. feedline diagnose "
        "measures the gain.",
        recognised="The machine has a GPU. In a loop over a loader without the argument pin_memory, no copy to the "
        "device is non_blocking. An explicit pin_memory=False is not reported.",
        to_do="DataLoader(..., pin_memory=True) and batch.to(device, non_blocking=True).",
        example="line 33: a copy without non_blocking, from the loader in line 20 without pin_memory.",
    ),
    priority=SCRIPT + 105,
    evaluate=_evaluate,
)
