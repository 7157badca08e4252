# SPDX-License-Identifier: Apache-2.0
"""/dev/shm is nearly full."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import BROKEN, Case, Cause, Found, gb, page

FULL = Threshold(0.9, "of /dev/shm, used: the next batch may not fit")


def _judge(case: Case) -> Iterator[Found]:
    shared = case.machine.shared
    if shared is not None and shared.total_bytes and shared.used_share > FULL:
        used = shared.total_bytes - shared.free_bytes
        yield Found("critical", (f"/dev/shm holds {gb(used)} of {gb(shared.total_bytes)}",))


CAUSE = Cause(
    page(
        "shared_memory_full",
        "/dev/shm is nearly full",
        means="torch's workers put each tensor into a file of /dev/shm. Where it is full, a worker dies of a "
        "bus error.",
        recognised="More than 90 % of it is used, before anything has started.",
        to_do="Remove leftovers of runs that were killed (feedline doctor --clean), or enlarge it: docker run "
        "--shm-size=8g.",
        example="/dev/shm holds 62 MB of 64 MB.",
    ),
    turn=BROKEN + 50,
    judge=_judge,
)
