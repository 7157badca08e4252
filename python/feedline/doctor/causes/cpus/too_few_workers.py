# SPDX-License-Identifier: Apache-2.0
"""The loader has no workers, although CPUs are available."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import LOAD, Analysis, Cause, Found, page

SEVERAL = Threshold(4.0, "CPUs per rank; with fewer, workers compete with the loop")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    usable = analysis.machine.cpus.threads // max(analysis.load.ranks, 1) if analysis.load is not None else 0
    if analysis.load is not None and analysis.load.workers == 0 and usable >= SEVERAL:
        yield Found("note", (f"num_workers=0 on {usable} usable CPUs",))


CAUSE = Cause(
    page(
        "too_few_workers",
        "the loader has no workers, although CPUs are available",
        means="With num_workers=0 the training loop produces each batch itself while the GPU waits. num_workers=0 is "
        "right if the data is in memory and only sliced, and is a useful baseline for measurements.",
        recognised="num_workers is 0 although each rank has several usable CPUs.",
        to_do="Set num_workers as advised above the findings, with persistent_workers=True; feedline tune "
        "measures the best number.",
        example="num_workers=0 on 8 usable CPUs.",
    ),
    priority=LOAD + 90,
    evaluate=_evaluate,
)
