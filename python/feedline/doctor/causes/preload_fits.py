# SPDX-License-Identifier: Apache-2.0
"""The dataset fits into memory."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import ADVICE, Case, Cause, Found, gb, page

PART = Threshold(0.25, "of the memory that is left: as waiting batches and the script get the rest")
MOST = Threshold(10e9, "bytes: reading more takes minutes, which the first epoch does beside training")


def _judge(case: Case) -> Iterator[Found]:
    source, memory = case.source, case.machine.memory
    if (
        source is None
        or source.kind in (None, "memory")
        or not source.whole
        or not memory.told
        or not source.total_bytes
    ):
        return
    if source.total_bytes < min(PART * memory.left, MOST):
        yield Found("note", (f"{gb(source.total_bytes)}, and {gb(memory.left)} of memory are left",))


CAUSE = Cause(
    page(
        "preload_fits",
        "the dataset fits into memory",
        means="What is read once can stay: in the page cache, where nothing else takes the memory, and "
        "decoded with .cache(), one copy for all workers and ranks.",
        recognised="SOURCE on disks or a server, its size against what is left of memory.",
        to_do="feedline.open(SOURCE).<fixed operations>.cache() keeps decoded pixels; vmtouch -t or one "
        "reading beforehand keeps the files.",
        example="6.2 GB, and 120.0 GB of memory are left.",
    ),
    turn=ADVICE + 10,
    judge=_judge,
)
