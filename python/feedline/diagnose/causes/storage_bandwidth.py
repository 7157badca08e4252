# SPDX-License-Identifier: Apache-2.0
"""The disk is saturated, by bytes or by requests."""

from __future__ import annotations

from feedline.diagnose.rules import contradictions, gains, reading, signals
from feedline.diagnose.rules.analysis import FROM_DEVICE, Analysis
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.certainty import READS_OF_PAGING
from feedline.diagnose.rules.contradictions import gain_of_more
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.reading import NEAR_CEILING
from feedline.diagnose.rules.shares import HELPS, NAMED
from feedline.findings import Entry
from feedline.profiler.summary.figures import Summary

__all__ = ["CAUSE", "FROM_DEVICE", "HELPS", "NAMED", "NEAR_CEILING"]

_BYTES = Fix(
    "Read fewer bytes: smaller files, a local copy on a faster disk, or a cache of frequently read data.",
    own='Read fewer bytes: .cache(PATH) on a faster disk or .cache("memory"), or smaller files.',
)
_REQUESTS = Fix(
    "Read in fewer requests: pack the files into shards (feedline pack), or copy them to a disk that serves more "
    "requests.",
    own='Read in fewer requests: feedline pack SOURCE, .cache(PATH) on a faster disk, or .cache("memory").',
)


def _evaluate(analysis: Analysis) -> Found | None:
    read = reading.of(analysis)
    if not read.is_named or not read.full or analysis.reading_is_taken:
        return None
    evidence, host = read.evidence, analysis.summary.host
    if not reading.bytes_are_scarce(host):
        small, large = host.disk_small_read_ms or 0.0, (host.disk_read_bytes or 0.0) / 1024
        evidence = [
            *evidence,
            f"a small read takes {small:.1f} ms, about as long as {large:.0f} KiB: requests are slow",
        ]
    return reading.found(analysis, read, 0.92, evidence, read.against)


def _fix(summary: Summary) -> str:
    return _BYTES(summary) if reading.bytes_are_scarce(summary.host) else _REQUESTS(summary)


def _full_disk(summary: Summary, _share: float) -> str | None:
    gain = gain_of_more(summary)
    if gain is None or gain[1] < HELPS or gain[2] <= 1:
        return None
    return (
        f"measured: {summary.counted(gain[0])} produce {gain[1]:.2f} times as many batches, so the disk is "
        "not saturated"
    )


CAUSE = Cause(
    Entry(
        code="storage_bandwidth",
        verb="diagnose",
        title="samples wait for storage because the disk is saturated",
        means="The run already reads at the disk's full bandwidth, or makes as many requests per second as the disk "
        "serves. More workers would only wait for each other's reads.",
        recognised="Measures waits without CPU in file system calls, the run's read rate compared with a probe of "
        "the disk, and the rate with a cold page cache.",
        to_do="Read fewer bytes, in fewer requests if small reads take as long as large ones, or from a faster disk.",
        abstains="The disk was not probed (--quick), or the run's reads cannot be counted.",
        example="480.0 MB/s were read; a probe of the disk reached 500.0 MB/s.",
    ),
    rules=(Rule(230, _evaluate),),
    fix=_fix,
    gain=gains.stages("storage"),
    signals=(signals.WORKERS, signals.IO, signals.DISK),
    contradicted={
        "the location of the files does not matter": contradictions.page_cache,
        "the disk is not saturated": _full_disk,
    },
    paging_instead=READS_OF_PAGING,
)
