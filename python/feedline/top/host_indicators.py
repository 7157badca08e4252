# SPDX-License-Identifier: Apache-2.0
"""Host indicators that a GPU waits for data: processes, their CPU use, and growing memory.

An idle GPU can have many causes. These indicators show whether the data supply is the cause, and which stage is slow:
batch production if all CPUs are busy, or reading if few CPUs are busy and a task waits for disks.
"""

from __future__ import annotations

import itertools

from ..findings import Threshold
from .rules import WAIT_NOTE, Moment, Seen, gb

ALL_CPUS = Threshold(0.9, "share of the usable CPUs in use above which batch production is CPU-bound")
FEW_CPUS = Threshold(0.5, "share of the usable CPUs in use below which batch production is not CPU-bound")
DISK_WAITS = Threshold(
    0.10, "share of the time from which tasks count as waiting for storage, as for warnings of diagnose"
)
RISE = Threshold(0.02, "growth over ten samples, relative to the first, from which memory counts as still growing")
_LEAST_RISE = 64e6  # bytes; smaller changes are noise


def supply_is_short(moment: Moment) -> bool:
    """Whether the data supply is too slow, judged by the loaders and the host."""
    return (longest_wait(moment) or 0.0) >= WAIT_NOTE or all_cpus_used(moment) or storage_waits(moment)


def longest_wait(moment: Moment) -> float | None:
    """Returns the largest share of a loop's time that the loop waits for its loader; None if no wait is known."""
    waits = [rates.wait_share for _, _, rates, _ in moment.loaders if rates is not None]
    waits += [loop.wait_share for loop in moment.loops]
    return max((wait for wait in waits if wait is not None), default=None)


def all_cpus_used(moment: Moment) -> bool:
    used = moment.host.cpus_used
    return used is not None and used >= ALL_CPUS * moment.host.cpus_usable


def storage_waits(moment: Moment) -> bool:
    """Whether few CPUs are used and a task waits for storage, judged by the kernel's pressure data or, if there is
    none, by the bytes read.
    """
    host = moment.host
    if host.cpus_used is None or host.cpus_used >= FEW_CPUS * host.cpus_usable:
        return False
    if host.io_pressure is not None:
        return host.io_pressure >= DISK_WAITS
    return bool(host.read_bytes_per_s)


def indicators_text(seen: Seen) -> str:
    """Describes the indicators, as in "17 processes use 0.4 of 4 CPUs, and tasks wait for storage"."""
    host = seen.now.host
    words = []
    if host.cpus_used is not None:
        count = len(host.pids)
        processes = "1 process uses" if count == 1 else f"{count} processes use"
        side = ", so producing batches is CPU-bound" if all_cpus_used(seen.now) else ""
        side = ", and tasks wait for storage" if storage_waits(seen.now) else side
        words.append(f"{processes} {host.cpus_used:.1f} of {host.cpus_usable:g} CPUs{side}")
    rise = rising_bytes(seen)
    if rise is not None:
        words.append(f"memory rises, by {gb(rise)} in {seen.looks} samples")
    return "; ".join(words)


def rising_bytes(seen: Seen) -> float | None:
    """Returns the growth of the processes' memory since the first sample; None if it has not grown steadily, or if this
    is not known yet.
    """
    held = [moment.host.resident_bytes for moment in seen.recent]
    if len(held) < seen.looks or seen.looks < 2:
        return None
    rise = held[-1] - held[0]
    rises = sum(after >= before for before, after in itertools.pairwise(held))
    steady = rises >= 0.8 * (len(held) - 1)
    return rise if steady and rise > max(RISE * held[0], _LEAST_RISE) else None
