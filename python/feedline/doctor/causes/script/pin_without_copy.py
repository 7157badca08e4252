# SPDX-License-Identifier: Apache-2.0
"""A loop measures page-locking without a copy to the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for loop in analysis.script.loops if analysis.script is not None else ():
        if not loop.uses_batch and any(call.get("pin_memory") is True for call in loop.loaders):
            of = f"the loader in line {loop.loaders[0].line} with pin_memory=True"
            yield Found(
                "note", (f"line {loop.line}: the loop over {of} never uses a batch",), about={"line": loop.line}
            )


CAUSE = Cause(
    page(
        "pin_without_copy",
        "a loop measures page-locking without a copy to the GPU",
        means="Page-locking costs a copy on the host, and pays off in the copy to the GPU. A loop that does not copy "
        "the batches shows only the cost, so a comparison of pin_memory=True and False does not predict training.",
        recognised="A loop over a loader with pin_memory=True never reads its batch.",
        to_do="Copy each batch to the GPU in both runs, or run feedline diagnose -- SCRIPT, which does so.",
        example="line 12: the loop over the loader in line 8 with pin_memory=True never uses a batch.",
    ),
    priority=SCRIPT + 160,
    evaluate=_evaluate,
)
