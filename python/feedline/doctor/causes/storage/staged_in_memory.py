# SPDX-License-Identifier: Apache-2.0
"""The dataset was copied to memory that the run needs."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import STORAGE, Analysis, Cause, Found, gb, page

PART = Threshold(0.5, "share of the available memory; workers and the page cache need the rest")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    source, memory = analysis.source, analysis.machine.memory
    if source is None or source.kind != "memory" or source.total_bytes is None or not memory.is_known:
        return
    if source.total_bytes > PART * memory.left:
        yield Found(
            "warning", (f"{source.name} uses {gb(source.total_bytes)} of memory, and {gb(memory.left)} is left",)
        )


CAUSE = Cause(
    page(
        "staged_in_memory",
        "the dataset was copied to memory that the run needs",
        means="Files in /dev/shm and other tmpfs use memory that cannot be reclaimed. The page cache stores "
        "frequently read data automatically, and can be reclaimed.",
        recognised="SOURCE is on tmpfs, and is large compared with the available memory.",
        to_do="Store the dataset on a local disk: after the first epoch, the page cache contains as much of it as "
        "fits.",
        example="/dev/shm/imagenet uses 40.0 GB of memory, and 20.0 GB is left.",
    ),
    priority=STORAGE + 60,
    evaluate=_evaluate,
)
