# SPDX-License-Identifier: Apache-2.0
"""The dataset fits in memory."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import ADVICE, Analysis, Cause, Found, gb, page

PART = Threshold(0.25, "share of the available memory; queued batches and the script need the rest")
MOST = Threshold(
    10e9, "size in bytes; reading more takes minutes, so a larger dataset should be read during the first epoch"
)


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    source, memory = analysis.source, analysis.machine.memory
    if (
        source is None
        or source.kind in (None, "memory")
        or not source.whole
        or not memory.is_known
        or not source.total_bytes
    ):
        return
    if source.total_bytes < min(PART * memory.left, MOST):
        size = f"the size of the dataset is {gb(source.total_bytes)}"
        yield Found("note", (f"{size}, and {gb(memory.left)} of memory is left",))


CAUSE = Cause(
    page(
        "preload_fits",
        "the dataset fits in memory",
        means="Data that was read once can stay in memory, either as files in the page cache, unless programs need the "
        "memory, or as decoded pixels with .cache(), in one copy for all workers and ranks.",
        recognised="SOURCE, on a disk or a server, is much smaller than the available memory.",
        to_do="feedline.open(SOURCE).<fixed operations>.cache() caches decoded pixels; vmtouch -t, or reading "
        "the files once beforehand, caches the files.",
        example="the size of the dataset is 6.2 GB, and 120.0 GB of memory is left.",
    ),
    priority=ADVICE + 10,
    evaluate=_evaluate,
)
