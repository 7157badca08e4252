# SPDX-License-Identifier: Apache-2.0
"""The cgroup's memory limit is near or was hit."""

from ...findings import Entry, Threshold
from ..rules import LESS_MEMORY, MEMORY, Alarm, Occurrences, Seen, gb

MEMORY_LEFT = Threshold(
    0.10, "minimum fraction of the limit that should be free, as a larger batch or one more worker may need it"
)


def _evaluate(seen: Seen) -> Occurrences:
    host = seen.now.host
    limit, used = host.memory.limit_bytes, host.memory.used_bytes
    if limit and used is not None and used > (1 - MEMORY_LEFT) * limit:
        yield 0, True, f"{gb(used)} of the memory limit of {gb(limit)} is used: {LESS_MEMORY}"
    if host.limit_hits_per_s:
        yield 0, True, f"the memory limit was reached: {LESS_MEMORY}"


ALARM = Alarm(
    Entry(
        code="memory_limit",
        verb="top",
        title="the container's memory limit is near",
        means="At the limit, the kernel reclaims pages, which slows everything down, and then kills a process.",
        recognised="Over 90 % of the cgroup's limit is used without reclaimable page cache, or the limit was reached.",
        to_do="Use less memory: less prefetching, fewer workers or smaller batches; or raise the limit.",
        abstains="There is no limit.",
        example="15.1 GB of the memory limit of 16.0 GB is used: less prefetching, fewer workers, smaller batches",
    ),
    priority=MEMORY + 10,
    evaluate=_evaluate,
)
