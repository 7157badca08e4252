# SPDX-License-Identifier: Apache-2.0
"""Waiting without CPU while a batch is made: how much of it is reading, and what can be said of it.

Three causes share what is spent in files: tiny files, a full disk, and late answers. They are asked in this order, and
the first that recognises itself takes all of it off the case.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from feedline.diagnose.judging import making, waiting
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Found, Gain
from feedline.diagnose.judging.shares import NAMED
from feedline.findings import Threshold
from feedline.watching.summary.figures import Host, Summary

FROM_DEVICE = Threshold(0.3, "of what is read: from block devices, for a local disk to be what is waited for")
FEWEST_BYTES = Threshold(1 << 10, "bytes of a sample: fewer are a worker's start")
MANY_BYTES = Threshold(16 << 10, "bytes of a sample: so many are no worker's start, even where no file was seen")
NEAR_CEILING = Threshold(0.7, "of what a probe of the disk got: from there on it is full")
LITTLE_COLDER = Threshold(0.9, "of the rate with files in the cache: then it is not the disk that is waited for")
UNMEASURED = 0.8  # the confidence where the disk was not probed
SMALL_FILE_BYTES = range(2 << 10, 128 << 10)
_NEEDS = (*making.NEEDS, "io")


@dataclass(frozen=True)
class Reading:
    """What of the waiting is reading.

    Attributes:
        share: of the loop's time, in files; the rest of the waiting is `outside`.
        from_device: samples come from a local disk.
        full: it gives no more.
        counted: where it waited was not seen, and what was read was counted.
    """

    share: float
    outside: float
    from_device: bool
    full: bool
    counted: bool
    part: float
    evidence: list[str] = field(default_factory=list)  # of the page cache, and of a full disk
    against: list[str] = field(default_factory=list)

    @property
    def is_named(self) -> bool:
        return self.share >= NAMED


def of(case: Case) -> Reading:
    """The reading that no cause took yet."""
    summary, host, waits = case.summary, case.summary.host, case.stage_share("storage")
    from_device, part = _from_device(summary), waiting.in_files(summary)
    counted = part is None and from_device  # not seen where it waited: the kernel counted what was read
    share = waits if counted else waits * (part or 0.0)
    if not from_device:
        return Reading(share, waits - share, False, False, False, part or 0.0)
    evidence, against = _of_the_cache(host)
    full = _near_ceiling(host)
    if full:
        read, given = host.read_bytes_per_s or 0.0, host.disk_ceiling_bytes_per_s or 0.0
        evidence.append(f"{read / 1e6:.1f} MB/s were read, of {given / 1e6:.1f} MB/s that the disk gives to a probe")
    return Reading(share, waits - share, True, full, counted, part or 0.0, evidence, against)


def found(
    case: Case, reading: Reading, confidence: float, evidence: list[str], against: list[str], gain: Gain | None = None
) -> Found:
    """The finding of a cause that takes it: what waits were seen to be for stands beside what the cause says."""
    summary = case.summary
    case.reading_is_taken = True
    if reading.counted:
        unseen = "where it waited was not seen: beside the reads that were counted it may have slept, too"
        against = [*against, unseen]
    told = [*making.evidence(case), *evidence, *waiting.sentences(summary.making.waited_for)]
    confidence = min(confidence, waiting.limit_of(summary, reading.part))
    return Found(reading.share, confidence, told, against, gain, _NEEDS)


def bytes_are_scarce(host: Host) -> bool:
    """Whether it is bytes that a full disk has no more of, and not requests.

    The probe's reads were large; or they were as small as the files, and smaller ones come back sooner in proportion.
    """
    if not host.disk_read_bytes or not host.disk_small_read_ms or host.disk_read_bytes >= SMALL_FILE_BYTES.stop:
        return True
    large_per_s = (host.disk_ceiling_bytes_per_s or 0.0) / host.disk_read_bytes
    return large_per_s < NEAR_CEILING * 1000 / host.disk_small_read_ms


def _from_device(summary: Summary) -> bool:
    """Whether samples come from a local disk: most of their bytes, and enough to be no worker's start.

    Bytes come by read() or, more of them, by faults of mapped pages. Where no file was seen to be opened, native code
    may have opened them, or there are none: then only many bytes count.
    """
    host, batch = summary.host, summary.loader.get("batch_size")
    samples = summary.loop.steps * (batch if isinstance(batch, int) else 1)
    faulted = (host.read_bytes_per_s or 0.0) * summary.loop.loop_s / max(samples, 1)
    least = MANY_BYTES if host.files_seen == 0 and not summary.native else FEWEST_BYTES
    read = (host.read_bytes_per_sample or 0.0) >= least or (host.files_seen != 0 and faulted >= MANY_BYTES)
    return (host.device_share or 0.0) > FROM_DEVICE and read


def _near_ceiling(host: Host) -> bool:
    rate, ceiling = host.read_bytes_per_s, host.disk_ceiling_bytes_per_s
    return rate is not None and bool(ceiling) and rate > NEAR_CEILING * (ceiling or 0.0)


def _of_the_cache(host: Host) -> tuple[list[str], list[str]]:
    found: list[str] = []
    counter: list[str] = []  # what contradicts it is in contradictions.py
    if host.cached_before is not None:
        found.append(f"{host.cached_before:.0%} of the dataset's files, by a sample, were in the page cache before")
    if host.cold_share is not None:
        sentence = f"with its files out of the page cache the loader makes {host.cold_share:.0%} of the batches"
        (found if host.cold_share < LITTLE_COLDER else counter).append(sentence + " that it makes with them in it")
    return found, counter
