# SPDX-License-Identifier: Apache-2.0
"""A disk is nearly full."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, gb, page

LEFT = Threshold(0.05, "share of the disk that is free")
SMALL = Threshold(
    2 * 2**30,
    "free bytes, enough for a checkpoint; a large disk that is 95 % full still has space for several checkpoints",
)


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    space = analysis.machine.temporary
    if space is not None and space.total_bytes and space.free_bytes < min(LEFT * space.total_bytes, SMALL):
        yield Found("warning", (f"/tmp has {gb(space.free_bytes)} free",))


CAUSE = Cause(
    page(
        "disk_full",
        "a disk is nearly full",
        means="Checkpoints, caches and temporary files fail with No space left on device, mostly at the end of an "
        "epoch.",
        recognised="/tmp, or the source's file system if it is writable, has little free space.",
        to_do="Remove unneeded files, or set TMPDIR to another disk.",
        example="/tmp has 120 MB free.",
    ),
    priority=MACHINE + 230,
    evaluate=_evaluate,
)
