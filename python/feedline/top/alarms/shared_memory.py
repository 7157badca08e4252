# SPDX-License-Identifier: Apache-2.0
"""/dev/shm is nearly full."""

from ...findings import Entry, Threshold
from ..rules import MEMORY, Alarm, Occurrences, Seen, gb

MEMORY_LEFT = Threshold(0.10, "minimum fraction of /dev/shm that should be free; otherwise the next batch may not fit")


def _evaluate(seen: Seen) -> Occurrences:
    shared, limit = seen.now.host.memory.shared_bytes, seen.now.host.memory.shared_limit_bytes
    if limit and shared is not None and shared > (1 - MEMORY_LEFT) * limit:
        sentence = f"/dev/shm holds {gb(shared)} of {gb(limit)}: remove leftover files, or use docker run --shm-size"
        yield 0, True, sentence


ALARM = Alarm(
    Entry(
        code="shared_memory",
        verb="top",
        title="/dev/shm is nearly full",
        means="Workers pass tensors through /dev/shm. If /dev/shm is full, a worker is killed by a bus error.",
        recognised="More than 90 % of /dev/shm is used.",
        to_do="Remove leftover files of killed runs, or enlarge /dev/shm (docker run --shm-size).",
        example="/dev/shm holds 62.0 MB of 64.0 MB: remove leftover files, or use docker run --shm-size",
    ),
    priority=MEMORY + 20,
    evaluate=_evaluate,
)
