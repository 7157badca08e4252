# SPDX-License-Identifier: Apache-2.0
"""Storage latency is high, and the storage could serve more reads concurrently."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.rules import contradictions, gains, reading, signals
from feedline.diagnose.rules.analysis import FROM_DEVICE, Analysis, gain_of_workers
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.certainty import READS_OF_PAGING
from feedline.diagnose.rules.fixes import Fix, is_lowered, more_within_reach, with_workers
from feedline.diagnose.rules.reading import NEAR_CEILING
from feedline.diagnose.rules.shares import NAMED
from feedline.findings import Entry
from feedline.profiler.summary.figures import Host, Summary

__all__ = ["CAUSE", "FROM_DEVICE", "NAMED", "NEAR_CEILING"]

_WORDS = Fix(
    "Keep more reads in flight: use more workers, or Feedline's loader, which prefetches in threads; or pack the "
    "samples into shards so that one read fetches many.",
    own="Reads are already prefetched, so the storage limits the rate: cache the data locally "
    'with .cache(PATH) or .cache("memory"), or pack the files into shards (feedline pack).',
    lowered="Keep more reads in flight: use more threads, or feedline.open(...).loader(...), which prefetches; or "
    "pack the files into shards (feedline pack).",
)
# For files on another machine, by `Host.files_place`: the fix that helps most there comes first.
_PLACES = {
    "nfs": "The files are on NFS, and all workers wait for its server: before adding workers, store copies on a "
    "local disk with feedline.open(..., cache=PATH) or `feedline stage` (feedline explain nfs_mount).",
    "parallel": "The files are on a parallel file system, which opens few files per second but reads large ones fast: "
    "pack them into shards (feedline pack), or store copies with cache=PATH (feedline explain parallel_mount).",
    "objects": "The files are objects on a FUSE mount, and each read is a request: open them by their URL (s3://, "
    "gs://), or store copies with cache=PATH or `feedline stage` (feedline explain object_mount).",
    "share": "The files are in another machine's shared folder, over one connection: store copies on a local disk with "
    "cache=PATH or `feedline stage` (feedline explain shared_folder_mount).",
}
_NOT_AHEAD = (
    "Keep more reads in flight: use a larger memory_budget, which allows more prefetching, or more "
    "threads; or pack the files into shards (feedline pack)."
)


def _evaluate(analysis: Analysis) -> Found | None:
    summary, read = analysis.summary, reading.of(analysis)
    if not read.is_named or analysis.reading_is_taken:
        return None
    if read.from_device:
        confidence, evidence, against = _on_this_disk(summary.host)
        found = reading.found(analysis, read, confidence, [*read.evidence, *evidence], [*read.against, *against])
    else:
        elsewhere = ["little was read from local disks, so the files are on remote storage"]
        found = reading.found(analysis, read, 0.85, [], elsewhere)
    best = _workers(summary)
    if best is None:
        return found
    gain, doubts = gain_of_workers(summary, best)
    return replace(found, gain=gain, against=[*found.against, *doubts])


def _on_this_disk(host: Host) -> tuple[float, list[str], list[str]]:
    """Returns (confidence, evidence, counter-evidence) for a disk that is not saturated."""
    if host.disk_ceiling_bytes_per_s is None:
        unknown = "the disk may be saturated, but its bandwidth was not measured because no experiments were run"
        return reading.UNMEASURED, [], [unknown]
    room = (
        f"{(host.read_bytes_per_s or 0) / 1e6:.1f} MB/s were read, but the disk reaches "
        f"{host.disk_ceiling_bytes_per_s / 1e6:.1f} MB/s: it is not saturated"
    )
    return 0.9, [room], []


def _fix(summary: Summary) -> str:
    location = _PLACES.get(summary.host.files_place or "")
    if location is not None:
        return with_workers(_workers(summary), location)
    not_ahead = summary.native and not is_lowered(summary) and not summary.making.read_ahead_ms
    return with_workers(more_within_reach(summary), _NOT_AHEAD if not_ahead else _WORDS(summary))


def _workers(summary: Summary) -> int | None:
    """For files on another machine, returns only measured gains, since predictions do not model the server."""
    best = more_within_reach(summary)
    return best if best in summary.ladder.rungs or summary.host.files_place not in _PLACES else None


CAUSE = Cause(
    Entry(
        code="storage_latency",
        verb="diagnose",
        title="samples wait for storage with high latency",
        means="Each read takes long, and too few reads are in flight. The storage, a network file "
        "system or an idle disk, could serve more reads concurrently.",
        recognised="Measures waits without CPU in file system calls, the run's read rate compared with a probe of "
        "the disk, and the rate with a cold page cache.",
        to_do="Keep more reads in flight, or use fewer and larger reads.",
        abstains="The stages of a batch were not observed. The finding is uncertain if the reason for the workers' "
        "waits is unknown.",
        example="4.5 MB/s were read, but the disk reaches 50.0 MB/s: it is not saturated.",
    ),
    rules=(Rule(240, _evaluate),),
    fix=_fix,
    gain=gains.stages("storage"),
    workers=_workers,
    signals=(signals.WORKERS, signals.STAGES),
    contradicted={
        "the location of the files does not matter": contradictions.page_cache,
        "reads are fast": contradictions.quick_reads,
    },
    paging_instead=READS_OF_PAGING,
)
