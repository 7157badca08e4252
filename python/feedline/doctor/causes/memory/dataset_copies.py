# SPDX-License-Identifier: Apache-2.0
"""The workers' copies of the dataset do not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator

from ....machine.planned_load import need_of
from ...rules import LOAD, Analysis, Cause, Found, gb, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    load, memory = analysis.load, analysis.machine.memory
    if load is None or not memory.is_known or not load.dataset_bytes:
        return
    need = need_of(load)
    if need.least > memory.left >= need.least - need.copies and 2 * need.copies > need.least:
        copies = f"{load.ranks * load.workers} workers x {gb(load.dataset_bytes)} = {gb(need.copies)}"
        yield Found("critical", (f"{copies}, but {gb(memory.left)} is left",))


CAUSE = Cause(
    page(
        "dataset_copies",
        "the workers' copies of the dataset do not fit in memory",
        means="Python stores reference counts in objects, so lists and dicts that workers read are copied page by "
        "page into each worker, even if never modified. With spawn, they are copied when a worker starts.",
        recognised="The planned loader does not fit in memory, mostly because of the copies (workers x dataset).",
        to_do="Store large data in one NumPy array or torch tensor, a memory-mapped file, or one packed "
        "string, which remain shared.",
        example="16 workers x 4.0 GB = 64.0 GB, but 38.0 GB is left.",
    ),
    priority=LOAD + 20,
    evaluate=_evaluate,
)
