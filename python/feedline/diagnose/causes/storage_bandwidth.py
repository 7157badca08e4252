# SPDX-License-Identifier: Apache-2.0
"""The disk gives all the bytes per second that it has."""

from __future__ import annotations

from feedline.diagnose.judging import contradictions, gains, reading, signals
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Cause, Found, Rule
from feedline.diagnose.judging.certainty import READS_OF_PAGING
from feedline.diagnose.judging.contradictions import gain_of_more
from feedline.diagnose.judging.fixes import Fix
from feedline.diagnose.judging.reading import FROM_DEVICE, NEAR_CEILING
from feedline.diagnose.judging.shares import HELPS, NAMED
from feedline.findings import Entry
from feedline.watching.summary.figures import Summary

__all__ = ["CAUSE", "FROM_DEVICE", "HELPS", "NAMED", "NEAR_CEILING"]


def _books(case: Case) -> Found | None:
    read = reading.of(case)
    if not read.is_named or not read.full or case.reading_is_taken:
        return None
    return reading.found(case, read, 0.92, read.evidence, read.against)


def _full_disk(summary: Summary, _share: float) -> str | None:
    gain = gain_of_more(summary)
    if gain is None or gain[1] < HELPS or gain[2] <= 1:
        return None
    return f"measured: {summary.counted(gain[0])} get {gain[1]:.2f} times the batches, so the disk has more to give"


CAUSE = Cause(
    Entry(
        code="storage_bandwidth",
        verb="diagnose",
        title="samples wait for storage: the disk is full",
        means="The run reads as many bytes per second as the disk has. More workers only wait for each other's reads.",
        recognised="Waiting without CPU, in files' calls; what the run reads per second against what a probe of the "
        "disk got; the rate with a cold page cache.",
        to_do="Read fewer bytes, or from a faster disk.",
        abstains="The disk was not probed (--quick), or the run's reads cannot be counted.",
        example="480.0 MB/s were read, of 500.0 MB/s that the disk gives to a probe.",
    ),
    rules=(Rule(230, _books),),
    fix=Fix(
        "Read fewer bytes: smaller files, a local copy on a faster disk, or a cache of the hot part.",
        own='Read fewer bytes: .cache(PATH) on a faster disk or .cache("memory"), or smaller files.',
    ),
    gain=gains.stages("storage"),
    signals=(signals.WORKERS, signals.IO, signals.DISK),
    contradicted={
        "its files' place does not matter": contradictions.page_cache,
        "the disk gives more": _full_disk,
    },
    beside_paging=READS_OF_PAGING,
)
