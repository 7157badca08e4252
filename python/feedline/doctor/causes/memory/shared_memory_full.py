# SPDX-License-Identifier: Apache-2.0
"""/dev/shm is nearly full."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import BROKEN, Analysis, Cause, Found, gb, page

FULL = Threshold(0.9, "share of /dev/shm that is used; above this, the next batch may not fit")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    shared = analysis.machine.shared
    if shared is not None and shared.total_bytes and shared.used_share > FULL:
        used = shared.total_bytes - shared.free_bytes
        yield Found("critical", (f"{gb(used)} of {gb(shared.total_bytes)} in /dev/shm are used",))


CAUSE = Cause(
    page(
        "shared_memory_full",
        "/dev/shm is nearly full",
        means="torch's workers store each tensor in a file in /dev/shm. If /dev/shm is full, a worker is killed by "
        "a bus error.",
        recognised="More than 90 % of /dev/shm is used before the run starts.",
        to_do="Remove leftovers of killed runs (feedline doctor --clean), or enlarge /dev/shm: docker run "
        "--shm-size=8g.",
        example="62 MB of 64 MB in /dev/shm are used.",
    ),
    priority=BROKEN + 50,
    evaluate=_evaluate,
)
