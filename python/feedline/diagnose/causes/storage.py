# SPDX-License-Identifier: Apache-2.0
"""Reading: what holds it up."""

from __future__ import annotations

from feedline.diagnose import prediction
from feedline.diagnose.causes.case import NAMED, Case

_SMALL_FILE_BYTES = range(2 << 10, 128 << 10)
_FROM_DEVICE = 0.3
_NEAR_CEILING = 0.7


def storage(case: Case, evidence: list[str]) -> None:
    host, share = case.summary.host, case.stage_share("storage")
    if share < NAMED:
        return
    counter = []
    cause, confidence = "storage_latency", 0.9
    rate, ceiling = host.read_bytes_per_s, host.disk_ceiling_bytes_per_s
    from_device = (host.device_share or 0.0) > _FROM_DEVICE
    if rate is not None and ceiling and rate > _NEAR_CEILING * ceiling:
        cause = "storage_bandwidth"
        evidence = [*evidence, f"{rate / 1e6:.0f} MB/s were read, of {ceiling / 1e6:.0f} MB/s that the disk gives"]
    elif from_device and int(host.read_bytes_per_sample or 0) in _SMALL_FILE_BYTES:
        cause, confidence = "small_files", 0.8
        evidence = [*evidence, f"a sample reads {(host.read_bytes_per_sample or 0) / 1024:.0f} KiB, from the disk"]
    elif not from_device:
        confidence = 0.85
        counter.append("little came from local disks: a network, a lock or a sleep can wait like storage")
    gain = None
    best = prediction.best_workers(case.summary, prediction.within_reach(case.summary))
    if cause == "storage_latency" and best > case.summary.workers:
        gain = prediction.gain(case.summary, prediction.cycle_ms(case.summary, best))
    case.name(cause, share, confidence, evidence, counter, gain, needs=("stages", "processes", "io"))
