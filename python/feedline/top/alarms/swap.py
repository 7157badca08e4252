# SPDX-License-Identifier: Apache-2.0
"""Memory of the run is swapped out, or the machine swaps."""

from ...findings import Entry
from ..rules import LESS_MEMORY, MEMORY, Alarm, Occurrences, Seen, gb

_LOOKS = 2  # an occasional page is harmless


def _evaluate(seen: Seen) -> Occurrences:
    host = seen.now.host
    swapping = [m.host.swapped_pages_per_s for m in seen.recent[-_LOOKS:]]
    if host.memory.swapped_bytes:
        yield 0, True, f"{gb(host.memory.swapped_bytes)} of this run's memory is swapped out: {LESS_MEMORY}"
    elif len(swapping) == min(_LOOKS, seen.looks) and all(swapping):
        yield 0, True, f"the machine swaps {host.swapped_pages_per_s:,.0f} pages/s: {LESS_MEMORY}"


ALARM = Alarm(
    Entry(
        code="swap",
        verb="top",
        title="memory is swapped out",
        means="The run's data does not fit into memory, so pages that are used again must be read from disk.",
        recognised="Some of the run's memory is swapped out, or the machine swaps in two consecutive samples.",
        to_do="Use less memory: less prefetching, fewer workers or smaller batches.",
        example="1.2 GB of this run's memory is swapped out: less prefetching, fewer workers, smaller batches",
    ),
    priority=MEMORY,
    evaluate=_evaluate,
)
