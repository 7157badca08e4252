# SPDX-License-Identifier: Apache-2.0
"""More batches are prefetched than necessary."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...advice import enough_ahead
from ...rules import LOAD, Analysis, Cause, Found, gb, page

DEEP = Threshold(4.0, "batches per worker; a loop that still waits needs more workers, not a longer queue")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    load = analysis.load
    if load is None or not load.workers:
        return
    enough = enough_ahead(load.sample_bytes)
    if load.prefetch > 2 * enough and load.prefetch > DEEP:
        of = f" with samples of {gb(load.sample_bytes)}" if load.sample_bytes else ""
        yield Found("note", (f"prefetch_factor={load.prefetch}{of}, but {enough} is enough",))


CAUSE = Cause(
    page(
        "prefetch_deep",
        "more batches are prefetched than necessary",
        means="Prefetching smooths out jitter; it never makes a loader faster. If a batch takes 50 ms to "
        "produce and 30 ms to use, two producers are needed, not a longer queue. Queued batches use memory: "
        "4 to 5 batches are enough for tiny samples, 2 for images of 224 pixels, 1 for video.",
        recognised="prefetch_factor is larger than useful for samples of this size.",
        to_do="Set prefetch_factor=2, or 1 for samples of tens of megabytes. If the loop still waits, use more "
        "workers; feedline diagnose shows whether it waits.",
        example="prefetch_factor=10 with samples of 50 MB, but 1 is enough.",
    ),
    priority=LOAD + 70,
    evaluate=_evaluate,
)
