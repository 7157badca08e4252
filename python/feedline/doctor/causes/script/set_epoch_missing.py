# SPDX-License-Identifier: Apache-2.0
"""The order is the same in every epoch."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    if analysis.script is not None and analysis.script.sampler_line is not None:
        line = analysis.script.sampler_line
        yield Found("warning", (f"line {line}: a DistributedSampler without set_epoch",), about={"line": line})


CAUSE = Cause(
    page(
        "set_epoch_missing",
        "the order is the same in every epoch",
        means="DistributedSampler shuffles by its seed and the epoch. Without set_epoch, the epoch stays 0 "
        "and the order never changes.",
        recognised="The script has a shuffling DistributedSampler, but no set_epoch.",
        to_do="Call sampler.set_epoch(epoch) at the start of each epoch. feedline.DataLoader does so if the "
        "script does not.",
        example="line 11: a DistributedSampler without set_epoch.",
    ),
    priority=SCRIPT + 90,
    evaluate=_evaluate,
)
