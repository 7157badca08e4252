# SPDX-License-Identifier: Apache-2.0
"""Runs that were killed have left files behind."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, gb, page

MUCH = Threshold(64 * 2**20, "bytes: less is worth no word")


def _judge(case: Case) -> Iterator[Found]:
    found = case.leftovers
    total = sum(one.size for one in found)
    if total < MUCH:
        return
    oldest = max(one.age_s for one in found) / 3600
    owners = ", ".join(str(owner) for owner in sorted({one.owner for one in found}))
    files = f"{len(found)} file{'s' if len(found) > 1 else ''}"
    words = f"{files} with {gb(total)} of user {owners}, the oldest from {oldest:.0f} h ago"
    yield Found("warning", (words, *(f"{one.path}: {gb(one.size)}" for one in found[:3])))


CAUSE = Cause(
    page(
        "leftovers",
        "runs that were killed have left files behind",
        means="Shared memory of workers stays in /dev/shm when nobody is there to remove it, and takes memory "
        "until the next boot.",
        recognised="Files with the names that torch, multiprocessing and NCCL give, at least an hour old, that no "
        "process has open and whose maker is gone.",
        to_do="feedline doctor --clean shows them, asks, and removes them.",
        example="3 files with 1.2 GB, the oldest from 26 h ago.",
    ),
    turn=MACHINE + 240,
    judge=_judge,
)
