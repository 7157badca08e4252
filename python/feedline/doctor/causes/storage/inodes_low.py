# SPDX-License-Identifier: Apache-2.0
"""The file system is running out of inodes."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

LEFT = Threshold(0.02, "share of the inodes that are free")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    spaces = [("/tmp", analysis.machine.temporary)]
    if analysis.source is not None:
        spaces.append((analysis.source.name, analysis.source.space))
    for name, space in spaces:
        if space is not None and space.inodes and space.free_inodes < LEFT * space.inodes:
            yield Found("warning", (f"{name} can hold {space.free_inodes:,} more files",))


CAUSE = Cause(
    page(
        "inodes_low",
        "the file system is running out of inodes",
        means="Writes fail with No space left on device, although df shows free space: each file needs an inode, and "
        "many small files use up the inodes first.",
        recognised="/tmp or the source's file system has few free inodes.",
        to_do="Remove small files there (df -i); pack image folders into shards: feedline pack.",
        example="/tmp can hold 120 more files.",
    ),
    priority=MACHINE + 220,
    evaluate=_evaluate,
)
