# SPDX-License-Identifier: Apache-2.0
"""Analyses the time that workers wait without CPU while producing batches: how much of it is reading, and from which
storage.

Three causes explain time spent on reading files: tiny files, a saturated disk, and high latency. The causes are
evaluated in this order, and the first one that applies claims all of the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from feedline.diagnose.rules import idle_waits, production
from feedline.diagnose.rules.analysis import Analysis, is_read_from_device
from feedline.diagnose.rules.cause import Found, Gain
from feedline.diagnose.rules.shares import NAMED
from feedline.findings import Threshold
from feedline.profiler.summary.figures import Host

NEAR_CEILING = Threshold(0.7, "fraction of the disk probe's rate above which the disk is saturated")
LITTLE_COLDER = Threshold(0.9, "fraction of the rate with cached files above which the disk is not the bottleneck")
_LARGE_READ = 512 << 10  # bytes: a disk of any kind transfers them for longer than it takes to begin
UNMEASURED = 0.8  # confidence if the disk was not probed
SMALL_FILE_BYTES = range(2 << 10, 128 << 10)
_NEEDS = (*production.NEEDS, "io")


@dataclass(frozen=True)
class Reading:
    """The part of the waiting time that is spent on reading.

    Attributes:
        share: share of the loop's time spent on files; the rest of the waiting time is `outside`.
        from_device: whether samples come from a local disk.
        full: whether the disk is saturated.
        counted: the blocking system calls were not observed, but the bytes read were counted.
    """

    share: float
    outside: float
    from_device: bool
    full: bool
    counted: bool
    part: float
    evidence: list[str] = field(default_factory=list)  # about the page cache and a saturated disk
    against: list[str] = field(default_factory=list)

    @property
    def is_named(self) -> bool:
        return self.share >= NAMED


def of(analysis: Analysis) -> Reading:
    """Returns the reading time that no cause has claimed yet."""
    summary, host, waits = analysis.summary, analysis.summary.host, analysis.stage_share("storage")
    from_device, part = is_read_from_device(summary), idle_waits.in_files(summary)
    counted = part is None and from_device  # the system calls were not observed, but the kernel counted the bytes read
    share = waits if counted else waits * (part or 0.0)
    if not from_device:
        return Reading(share, waits - share, False, False, False, part or 0.0)
    evidence, against = _of_the_cache(host)
    full = _near_ceiling(host)
    if full:
        read, given = host.read_bytes_per_s or 0.0, host.disk_ceiling_bytes_per_s or 0.0
        evidence.append(f"{read / 1e6:.1f} MB/s were read; a probe of the disk reached {given / 1e6:.1f} MB/s")
    return Reading(share, waits - share, True, full, counted, part or 0.0, evidence, against)


def found(
    analysis: Analysis,
    reading: Reading,
    confidence: float,
    evidence: list[str],
    against: list[str],
    gain: Gain | None = None,
) -> Found:
    """Returns the result for the cause that claims the reading time, with its evidence and the observed waits."""
    summary = analysis.summary
    analysis.reading_is_taken = True
    if reading.counted:
        unseen = "blocking system calls were not observed, so the worker may have slept instead of reading"
        against = [*against, unseen]
    shown = [*production.evidence(analysis), *evidence, *idle_waits.sentences(summary.making.waited_for)]
    confidence = min(confidence, idle_waits.limit_of(summary, reading.part))
    return Found(reading.share, confidence, shown, against, gain, _NEEDS)


def bytes_are_scarce(host: Host) -> bool:
    """Whether a saturated disk is limited by its bandwidth rather than by the number of requests.

    The probe's reads may be as small as the files; if bandwidth is the limit, smaller reads take proportionally less
    time.
    """
    if not host.disk_read_bytes or not host.disk_small_read_ms or host.disk_read_bytes >= _LARGE_READ:
        return True
    large_per_s = (host.disk_ceiling_bytes_per_s or 0.0) / host.disk_read_bytes
    return large_per_s < NEAR_CEILING * 1000 / host.disk_small_read_ms


def _near_ceiling(host: Host) -> bool:
    rate, ceiling = host.read_bytes_per_s, host.disk_ceiling_bytes_per_s
    return rate is not None and bool(ceiling) and rate > NEAR_CEILING * (ceiling or 0.0)


def _of_the_cache(host: Host) -> tuple[list[str], list[str]]:
    found: list[str] = []
    counter: list[str] = []  # contradictions.py reports what contradicts it
    if host.cached_before is not None:
        found.append(f"{host.cached_before:.0%} of the dataset's files (sampled) were in the page cache before the run")
    if host.cold_share is not None:
        sentence = (
            f"with its files evicted from the page cache, the loader produces {host.cold_share:.0%} of the batches"
        )
        (found if host.cold_share < LITTLE_COLDER else counter).append(sentence + " that it produces with cached files")
    return found, counter
