# SPDX-License-Identifier: Apache-2.0
"""Files that killed runs left."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, gb, page

MUCH = Threshold(64 * 2**20, "size in bytes; smaller leftovers are not reported")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    found = analysis.leftovers
    total = sum(one.size for one in found)
    if total < MUCH:
        return
    oldest = max(one.age_s for one in found) / 3600
    owners = ", ".join(str(owner) for owner in sorted({one.owner for one in found}))
    files = f"{len(found)} file{'s' if len(found) > 1 else ''}"
    words = f"{files} ({gb(total)}) of user {owners}, the oldest {oldest:.0f} h old"
    yield Found("warning", (words, *(f"{one.path}: {gb(one.size)}" for one in found[:3])))


CAUSE = Cause(
    page(
        "leftovers",
        "killed runs left temporary files",
        means="The workers' shared memory remains in /dev/shm if no process is left to remove it, and uses memory "
        "until the next boot.",
        recognised="There are files named like those of torch, multiprocessing and NCCL that are at least an hour old, "
        "that no process has open, and whose creator has exited.",
        to_do="feedline doctor --clean lists the files, asks for confirmation, and removes them.",
        example="3 files (1.2 GB) of user 1000, the oldest 26 h old.",
    ),
    priority=MACHINE + 240,
    evaluate=_evaluate,
)
