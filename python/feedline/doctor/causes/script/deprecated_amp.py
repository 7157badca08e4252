# SPDX-License-Identifier: Apache-2.0
"""The script uses torch.cuda.amp, which is deprecated."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    places = analysis.script.old_amp if analysis.script is not None else ()
    if places:
        lines = ", ".join(dict.fromkeys(f"line {location.line}: {location.what}" for location in places))
        yield Found("warning", (lines,), about={"line": places[0].line})


CAUSE = Cause(
    page(
        "deprecated_amp",
        "torch.cuda.amp is deprecated",
        means="torch.cuda.amp emits warnings and will be removed. torch.amp supports every device. With "
        "bfloat16, autocast "
        "is enough: gradients need no scaling. Autocast does not silently use float32 because of a library's version: "
        "feedline diagnose --amp and feedline trace show which kernels run.",
        recognised="The script calls torch.cuda.amp.",
        to_do="torch.amp.autocast('cuda'), and torch.amp.GradScaler('cuda') with float16.",
        example="line 40: torch.cuda.amp.autocast.",
    ),
    priority=SCRIPT + 140,
    evaluate=_evaluate,
)
