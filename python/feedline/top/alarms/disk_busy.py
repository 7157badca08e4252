# SPDX-License-Identifier: Apache-2.0
"""A disk is always busy."""

from ...findings import Entry, Threshold
from ..rules import HOST, Alarm, Occurrences, Seen

DISK_BUSY = Threshold(0.95, "of the time; a disk below this has idle gaps")
IO_PRESSURE = Threshold(0.10, "of the time, during which something waits for a disk")


def _evaluate(seen: Seen) -> Occurrences:
    if not seen.now.host.disks:
        return
    disk = seen.now.host.disks[0]
    busy = seen.held(d.busy_share for m in seen.recent for d in m.host.disks if d.name == disk.name)
    pressure = seen.held(m.host.io_pressure for m in seen.recent)
    if busy is None or busy < DISK_BUSY:
        return
    if pressure is None or pressure < IO_PRESSURE:
        yield 0, False, f"{disk.name} is always busy, but nothing waits: the disk handles many requests at once"
    else:
        waits = f"{disk.name} is always busy, and work waits for it {pressure:.0%} of the time"
        yield 0, True, f"{waits}: cache or pack the data"


ALARM = Alarm(
    Entry(
        code="disk_busy",
        verb="top",
        title="a disk is always busy",
        means="Reads queue up. A device that handles many requests at once is busy long before it is at its limit, "
        "so this is only a note if nothing waits.",
        recognised="A device is always busy, and work waits for disks 10 % of the time.",
        to_do="Cache the data in memory or on a faster disk, or pack small files into shards.",
        abstains="The condition must last for ten samples.",
        example="vda is always busy, and work waits for it 40% of the time: cache or pack the data",
    ),
    priority=HOST + 20,
    evaluate=_evaluate,
)
