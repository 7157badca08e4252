# SPDX-License-Identifier: Apache-2.0
"""Each sample is a tiny file, and the disk must serve thousands of them."""

from __future__ import annotations

from feedline.diagnose.rules import contradictions, gains, reading, signals
from feedline.diagnose.rules.analysis import FEWEST_BYTES, FROM_DEVICE, MANY_FILES, Analysis, is_file_per_sample
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.certainty import READS_OF_PAGING
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.reading import NEAR_CEILING
from feedline.diagnose.rules.shares import NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.summary.figures import Summary

__all__ = ["CAUSE", "FEWEST_BYTES", "FROM_DEVICE", "LARGEST", "MANY_FILES", "NAMED", "NEAR_CEILING", "SMALLEST"]

SMALLEST = Threshold(
    reading.SMALL_FILE_BYTES.start, "minimum bytes per sample of an image or record; smaller reads have another purpose"
)
LARGEST = Threshold(
    reading.SMALL_FILE_BYTES.stop, "bytes per sample above which the transfer takes longer than the request"
)
MANY_SAMPLES = Threshold(
    1_048_576, "size in bytes above which a file of the dataset contains many samples, of which each is a part"
)
MOST_READS = Threshold(
    8, "reads per sample above which a sample is not a small file but parts of a large one, if no opened file was seen"
)
_OF_FILES = ("folder", "files")  # Feedline's formats with a file per sample


def _evaluate(analysis: Analysis) -> Found | None:
    host, read = analysis.summary.host, reading.of(analysis)
    size = int(host.read_bytes_per_sample or 0)
    small = size in reading.SMALL_FILE_BYTES or (size < LARGEST and is_file_per_sample(host))
    if not read.is_named or not read.from_device or not small or not _may_be_files(analysis.summary):
        return None
    if read.full and reading.bytes_are_scarce(host):
        return None  # storage_bandwidth
    evidence = [*read.evidence, f"a sample reads {size / 1024:.3g} KiB from the disk"]
    confidence = reading.UNMEASURED if host.disk_ceiling_bytes_per_s is None else 0.9
    return reading.found(analysis, read, confidence, evidence, read.against)


def _may_be_files(summary: Summary) -> bool:
    """Whether each sample may be a file: known for Feedline's own loaders, otherwise estimated from the sizes of
    samples and of the files that were seen.
    """
    form, host = (summary.loader.get("engine") or {}).get("format"), summary.host
    if form:
        return form in _OF_FILES
    if not host.files_seen:  # native code may have opened them
        return (host.reads_per_sample or 0.0) <= MOST_READS
    return host.file_bytes is None or host.file_bytes < MANY_SAMPLES


CAUSE = Cause(
    Entry(
        code="small_files",
        verb="diagnose",
        title="samples wait for storage because files are tiny",
        means="Opening a 10 KB file takes a disk as long as reading 100 KB. If every sample is a file, the "
        "rate depends on the number of requests, not on their size.",
        recognised="Measures waits in file system calls, the bytes per sample from a local disk, and the run's read "
        "rate compared with that of a disk probe.",
        to_do="Pack the files into shards, which are read in large pieces.",
        abstains="The run's reads cannot be counted, for example because its processes belong to another user.",
        example="a sample reads 9 KiB from the disk.",
    ),
    rules=(Rule(220, _evaluate),),
    fix=Fix(
        "Pack the files into shards (WebDataset tar files), so that one large read replaces thousands of small reads.",
        own="feedline pack SOURCE 'shards/{:06d}.tar': one large read replaces thousands of small ones.",
    ),
    gain=gains.stages("storage"),
    signals=(signals.WORKERS, signals.IO),
    contradicted={
        "the location of the files does not matter": contradictions.page_cache,
        "reads are fast": contradictions.quick_reads,
    },
    paging_instead=READS_OF_PAGING,
)
