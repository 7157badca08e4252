# SPDX-License-Identifier: Apache-2.0
"""The dataset has many small files."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import STORAGE, Analysis, Cause, Found, gb, page

MANY = Threshold(10_000, "number of files; the first epoch caches a smaller number")
SOME = Threshold(1_000, "number of files found before the time limit; if listing is slow, opening files is also slow")
MUCH = Threshold(100e9, "size of a dataset in bytes; it does not stay in the page cache, so each epoch opens its files")
STREAMED = Threshold(16 * 2**20, "size in bytes; in datasets of 100 GB, larger files are read nearly as fast as shards")
SMALL = Threshold(1 * 2**20, "size in bytes; larger files take longer to read than to open")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    source = analysis.source
    if source is None or source.files is None or source.file_bytes is None or source.mount is None:
        return
    if source.kind == "memory":
        return
    slow_listing = not source.whole and source.kind in ("network", "disk")
    many = source.files > (SOME if slow_listing else MANY) and source.file_bytes < SMALL
    much = source.files * source.file_bytes >= MUCH and source.files > SOME and source.file_bytes < STREAMED
    if many or much:
        more = "" if source.whole else "more than "
        size = f", {gb(source.total_bytes)} in total" if much and source.total_bytes is not None else ""
        severity = "note" if source.kind in ("nvme", "ssd") and not much else "warning"
        words = f"{more}{source.files:,} files of {gb(source.file_bytes)} on {source.mount.kind}{size}"
        yield Found(severity, (words, _CONTENTION[source.kind in ("nvme", "ssd")]))


_CONTENTION = {
    False: "all workers and ranks wait for the same device or server, so more of them do not open files faster",
    True: "each file costs system calls and a directory look-up, for which workers compete",
}


CAUSE = Cause(
    page(
        "small_files",
        "many small files",
        means="Each file costs an open, a look-up and a seek; over a network, a round trip. Above 100 GB, "
        "shards are strongly recommended.",
        recognised="The dataset has more than 10,000 files with a mean size below 1 MiB, or at least 100 GB in files "
        "below 16 MiB, on any storage except memory. It is a note on a local SSD or NVMe drive below 100 GB, and a "
        "warning otherwise.",
        to_do="feedline pack SOURCE SHARDS writes shards, preserves the order of samples, and can resume after an "
        "interruption.",
        example="1,281,167 files of 110 kB on nfs4.",
    ),
    priority=STORAGE + 70,
    evaluate=_evaluate,
)
