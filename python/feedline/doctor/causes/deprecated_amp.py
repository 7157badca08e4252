# SPDX-License-Identifier: Apache-2.0
"""The script uses torch.cuda.amp, which is deprecated."""

from __future__ import annotations

from collections.abc import Iterator

from ..rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    places = analysis.script.old_amp if analysis.script is not None else ()
    if places:
        lines = ", ".join(dict.fromkeys(f"line {place.line}: {place.what}" for place in places))
        yield Found("warning", (lines,), about={"line": places[0].line})


CAUSE = Cause(
    page(
        "deprecated_amp",
        "torch.cuda.amp is deprecated",
        means="torch.cuda.amp emits warnings and will be removed. torch.amp supports every device. With "
        "bfloat16, autocast "
        "is enough: gradients need no scaling.",
        recognised="Calls of torch.cuda.amp in the script.",
        to_do="torch.amp.autocast('cuda'), and torch.amp.GradScaler('cuda') with float16.",
        example="line 40: torch.cuda.amp.autocast.",
    ),
    priority=SCRIPT + 140,
    evaluate=_evaluate,
)
