# SPDX-License-Identifier: Apache-2.0
"""A disk is always busy."""

from ...findings import Entry, Threshold
from ..rules import HOST, Alarm, Occurrences, Seen

DISK_BUSY = Threshold(0.95, "minimum share of the time in which the disk is busy; below this, it has idle periods")
IO_PRESSURE = Threshold(0.10, "share of the time with tasks waiting for a disk above which an alarm is raised")


def _evaluate(seen: Seen) -> Occurrences:
    if not seen.now.host.disks:
        return
    disk = seen.now.host.disks[0]
    busy = seen.held(d.busy_share for m in seen.recent for d in m.host.disks if d.name == disk.name)
    pressure = seen.held(m.host.io_pressure for m in seen.recent)
    if busy is None or busy < DISK_BUSY:
        return
    if pressure is None or pressure < IO_PRESSURE:
        yield 0, False, f"{disk.name} is always busy, but no task waits: the disk serves many requests concurrently"
    else:
        waits = f"{disk.name} is always busy, and tasks wait for it {pressure:.0%} of the time"
        yield 0, True, f"{waits}: cache or pack the data"


ALARM = Alarm(
    Entry(
        code="disk_busy",
        verb="top",
        title="a disk is always busy",
        means="Reads queue up. A device that serves many requests concurrently is busy long before it reaches its "
        "limit, so this is only a note if no task waits.",
        recognised="A device is always busy, and tasks wait for disks for 10 % of the time.",
        to_do="Cache the data in memory or on a faster disk, or pack small files into shards.",
        abstains="The condition lasts for fewer than ten samples.",
        example="vda is always busy, and tasks wait for it 40% of the time: cache or pack the data",
    ),
    priority=HOST + 20,
    evaluate=_evaluate,
)
