# SPDX-License-Identifier: Apache-2.0
"""The loader page-locks memory, but there is no GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import LOAD, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    if analysis.load is not None and analysis.load.pinned and not analysis.wants_gpu:
        yield Found("note", ("pin_memory=True, but this machine has no NVIDIA GPU",))


CAUSE = Cause(
    page(
        "pin_without_gpu",
        "the loader page-locks memory, but there is no GPU",
        means="pin_memory=True makes copies to a GPU faster. Without a GPU, torch warns and ignores the argument, "
        "or locks memory that cannot be swapped out for no gain.",
        recognised="pin_memory is on, but the machine has no NVIDIA GPU.",
        to_do="pin_memory=torch.cuda.is_available().",
        example="pin_memory=True, but this machine has no NVIDIA GPU.",
    ),
    priority=LOAD + 80,
    evaluate=_evaluate,
)
