# SPDX-License-Identifier: Apache-2.0
"""Answers of the storage come late, and it could give more at once."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.judging import contradictions, gains, reading, signals
from feedline.diagnose.judging.case import Case, gain_of_workers
from feedline.diagnose.judging.cause import Cause, Found, Rule
from feedline.diagnose.judging.certainty import READS_OF_PAGING
from feedline.diagnose.judging.fixes import Fix, is_lowered, more_within_reach, with_workers
from feedline.diagnose.judging.reading import FROM_DEVICE, NEAR_CEILING
from feedline.diagnose.judging.shares import NAMED
from feedline.findings import Entry
from feedline.watching.summary.figures import Host, Summary

__all__ = ["CAUSE", "FROM_DEVICE", "NAMED", "NEAR_CEILING"]

_WORDS = Fix(
    "Have more reads under way: more workers, or Feedline's loader, which reads ahead in threads; "
    "or pack the samples into shards so that one read brings many.",
    own="Reads are ahead of the threads already, and the storage gives no more: keep what was read near "
    'with .cache(PATH) or .cache("memory"), or pack the files into shards (feedline pack).',
    lowered="Have more reads under way: more threads, or feedline.open(...).loader(...), which reads ahead; "
    "or pack the files into shards (feedline pack).",
)
# Of files on another machine, by `Host.files_place`: what helps there goes first, and it is not the same.
_PLACES = {
    "nfs": "The files lie on NFS, whose server all workers wait for: keep copies on a local disk with "
    "feedline.open(..., cache=PATH) or `feedline stage`, before more workers (feedline explain nfs_mount).",
    "parallel": "The files lie on a parallel file system, which opens few files a second and reads large ones fast: "
    "pack them into shards (feedline pack), or keep copies with cache=PATH (feedline explain parallel_mount).",
    "objects": "The files are objects behind a FUSE mount, and each is a request: open them by their URL (s3://, "
    "gs://), or keep copies with cache=PATH or `feedline stage` (feedline explain object_mount).",
    "share": "The files lie in another machine's folder, behind one connection: keep copies on a local disk with "
    "cache=PATH or `feedline stage` (feedline explain shared_folder_mount).",
}
_NOT_AHEAD = (
    "Have more reads under way: more memory_budget, so that they are made ahead of the threads, or more threads; or "
    "pack the files into shards (feedline pack)."
)


def _books(case: Case) -> Found | None:
    summary, read = case.summary, reading.of(case)
    if not read.is_named or case.reading_is_taken:
        return None
    if read.from_device:
        confidence, evidence, against = _on_this_disk(summary.host)
        found = reading.found(case, read, confidence, [*read.evidence, *evidence], [*read.against, *against])
    else:
        elsewhere = ["little came from local disks: what holds the files is elsewhere"]
        found = reading.found(case, read, 0.85, [], elsewhere)
    best = _workers(summary)
    if best is None:
        return found
    gain, doubts = gain_of_workers(summary, best)
    return replace(found, gain=gain, against=[*found.against, *doubts])


def _on_this_disk(host: Host) -> tuple[float, list[str], list[str]]:
    """(confidence, evidence, what speaks against it) of a disk that is not full."""
    if host.disk_ceiling_bytes_per_s is None:
        unknown = "whether the disk was full is not known: experiments would have measured what it gives"
        return reading.UNMEASURED, [], [unknown]
    room = (
        f"{(host.read_bytes_per_s or 0) / 1e6:.1f} MB/s were read, and the disk gives "
        f"{host.disk_ceiling_bytes_per_s / 1e6:.1f} MB/s: it is not full"
    )
    return 0.9, [room], []


def _fix(summary: Summary) -> str:
    place = _PLACES.get(summary.host.files_place or "")
    if place is not None:
        return with_workers(_workers(summary), place)
    not_ahead = summary.native and not is_lowered(summary) and not summary.making.read_ahead_ms
    return with_workers(more_within_reach(summary), _NOT_AHEAD if not_ahead else _WORDS(summary))


def _workers(summary: Summary) -> int | None:
    """Of files that another machine holds only where it was measured: a prediction does not know their server."""
    best = more_within_reach(summary)
    return best if best in summary.ladder.rungs or summary.host.files_place not in _PLACES else None


CAUSE = Cause(
    Entry(
        code="storage_latency",
        verb="diagnose",
        title="samples wait for storage: answers come late",
        means="Each read is answered after a while, and too few are asked for at a time. The storage, a network file "
        "system or an idle disk, could answer more at once.",
        recognised="Waiting without CPU, in files' calls; what the run reads per second against what a probe of the "
        "disk got; the rate with a cold page cache.",
        to_do="Have more reads under way, or fewer and larger ones.",
        abstains="The stages of a batch were not seen. Never certain if what the workers waited for is unknown.",
        example="4.5 MB/s were read, and the disk gives 50.0 MB/s: it is not full.",
    ),
    rules=(Rule(240, _books),),
    fix=_fix,
    gain=gains.stages("storage"),
    workers=_workers,
    signals=(signals.WORKERS, signals.STAGES),
    contradicted={
        "its files' place does not matter": contradictions.page_cache,
        "reads are quick": contradictions.quick_reads,
    },
    beside_paging=READS_OF_PAGING,
)
