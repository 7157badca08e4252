# SPDX-License-Identifier: Apache-2.0
"""Host indicators for a GPU that waits for data: processes, their CPU use, growing memory.

A symptom at the GPU can have many causes. Together with these indicators it points to the data supply, and to the
stage: if all CPUs are busy, making batches is slow; if few are and something waits for disks, reading is.
"""

from __future__ import annotations

import itertools

from ..findings import Threshold
from .rules import WAIT_NOTE, Moment, Seen, gb

ALL_CPUS = Threshold(0.9, "of the usable CPUs in use: batch preparation is CPU-bound")
FEW_CPUS = Threshold(0.5, "of the usable CPUs in use: below this, batch preparation is not CPU-bound")
DISK_WAITS = Threshold(0.10, "of the time with a task waiting for storage; the same as for a warning of diagnose")
RISE = Threshold(0.02, "times the memory of ten samples earlier: memory is still growing")
_LEAST_RISE = 64e6  # bytes; smaller changes are noise


def supply_is_short(moment: Moment) -> bool:
    """Judges by the loaders and the host."""
    waits = [rates.wait_share or 0.0 for _, _, rates, _ in moment.loaders if rates is not None]
    return max(waits, default=0.0) >= WAIT_NOTE or all_cpus_used(moment) or storage_waits(moment)


def all_cpus_used(moment: Moment) -> bool:
    used = moment.host.cpus_used
    return used is not None and used >= ALL_CPUS * moment.host.cpus_usable


def storage_waits(moment: Moment) -> bool:
    """Whether few CPUs are used and something waits for storage, by kernel pressure data, else by bytes read."""
    host = moment.host
    if host.cpus_used is None or host.cpus_used >= FEW_CPUS * host.cpus_usable:
        return False
    if host.io_pressure is not None:
        return host.io_pressure >= DISK_WAITS
    return bool(host.read_bytes_per_s)


def indicators_text(seen: Seen) -> str:
    """The indicators in words: "17 processes use 3.9 of 4 CPUs, so making batches; memory rises by 1.2 GB"."""
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
    """How much the processes' memory has grown since the first sample; None if it has not, or is not known yet."""
    held = [moment.host.resident_bytes for moment in seen.recent]
    if len(held) < seen.looks or seen.looks < 2:
        return None
    rise = held[-1] - held[0]
    rises = sum(after >= before for before, after in itertools.pairwise(held))
    steady = rises >= 0.8 * (len(held) - 1)
    return rise if steady and rise > max(RISE * held[0], _LEAST_RISE) else None
