# SPDX-License-Identifier: Apache-2.0
"""Memory of the run is swapped out, or the machine swaps."""

from ...findings import Entry
from ..judging import LESS_MEMORY, MEMORY, Alarm, Seen, Told, gb

_LOOKS = 2  # one page now and then is nothing


def _judges(seen: Seen) -> Told:
    host = seen.now.host
    swapping = [m.host.swapped_pages_per_s for m in seen.recent[-_LOOKS:]]
    if host.memory.swapped_bytes:
        yield 0, True, f"{gb(host.memory.swapped_bytes)} of this run are swapped out: {LESS_MEMORY}"
    elif len(swapping) == min(_LOOKS, seen.looks) and all(swapping):
        yield 0, True, f"the machine swaps {host.swapped_pages_per_s:,.0f} pages/s: {LESS_MEMORY}"


ALARM = Alarm(
    Entry(
        code="swap",
        verb="top",
        title="memory is swapped out",
        means="What the run holds does not fit into memory, and each page that is used again is read from a disk.",
        recognised="Memory of the run is swapped out, or the machine swaps in two looks that follow each other.",
        to_do="Hold less: less prefetching, fewer workers, smaller batches.",
        example="1.2 GB of this run are swapped out: less prefetching, fewer workers, smaller batches",
    ),
    turn=MEMORY,
    judges=_judges,
)
