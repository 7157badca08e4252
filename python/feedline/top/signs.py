# SPDX-License-Identifier: Apache-2.0
"""What the host shows beside a GPU that is not fed: processes, their CPU, memory that rises.

A symptom at the GPU alone may be anybody's. Together with these it is the supply of data, and they tell its side: all
CPUs busy is making batches, and few busy ones beside waits for a disk are reading.
"""

from __future__ import annotations

import itertools

from ..findings import Threshold
from .judging import WAIT_NOTE, Moment, Seen, gb

ALL_CPUS = Threshold(0.9, "of the usable CPUs, used: the run makes its batches as fast as they let it")
FEW_CPUS = Threshold(0.5, "of the usable CPUs, used: with fewer, making batches is not what takes the time")
DISK_WAITS = Threshold(0.10, "of the time in which something waited for storage, as of a warning of diagnose")
RISE = Threshold(0.02, "more memory in ten looks: it still rises")
_LEAST_RISE = 64e6  # bytes: less comes and goes


def supply_is_short(moment: Moment) -> bool:
    """By what is known of the loaders and the host."""
    waits = [rates.wait_share or 0.0 for _, _, rates, _ in moment.loaders if rates is not None]
    return max(waits, default=0.0) >= WAIT_NOTE or all_cpus_used(moment) or storage_waits(moment)


def all_cpus_used(moment: Moment) -> bool:
    used = moment.host.cpus_used
    return used is not None and used >= ALL_CPUS * moment.host.cpus_usable


def storage_waits(moment: Moment) -> bool:
    """Few CPUs are used, and something waits for storage: pressure where the kernel tells it, else bytes read."""
    host = moment.host
    if host.cpus_used is None or host.cpus_used >= FEW_CPUS * host.cpus_usable:
        return False
    if host.io_pressure is not None:
        return host.io_pressure >= DISK_WAITS
    return bool(host.read_bytes_per_s)


def told(seen: Seen) -> str:
    """The signs in words: "17 processes use 3.9 of 4 CPUs, so making batches; memory rises by 1.2 GB"."""
    host = seen.now.host
    words = []
    if host.cpus_used is not None:
        count = len(host.pids)
        processes = "1 process uses" if count == 1 else f"{count} processes use"
        side = ", so making batches" if all_cpus_used(seen.now) else ""
        side = ", and storage is waited for" if storage_waits(seen.now) else side
        words.append(f"{processes} {host.cpus_used:.1f} of {host.cpus_usable:g} CPUs{side}")
    rise = rising_bytes(seen)
    if rise is not None:
        words.append(f"memory rises, by {gb(rise)} in {seen.looks} looks")
    return "; ".join(words)


def rising_bytes(seen: Seen) -> float | None:
    """How much more memory the processes hold than when the looks began; None: no more, or it is not known yet."""
    held = [moment.host.resident_bytes for moment in seen.recent]
    if len(held) < seen.looks or seen.looks < 2:
        return None
    rise = held[-1] - held[0]
    rises = sum(after >= before for before, after in itertools.pairwise(held))
    steady = rises >= 0.8 * (len(held) - 1)
    return rise if steady and rise > max(RISE * held[0], _LEAST_RISE) else None
