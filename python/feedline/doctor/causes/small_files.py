# SPDX-License-Identifier: Apache-2.0
"""The dataset has many small files."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..rules import STORAGE, Analysis, Cause, Found, gb, page

MANY = Threshold(10_000, "files: the first epoch caches a smaller number")
SOME = Threshold(1_000, "files found before the time limit: if listing is slow, opening is slow as well")
SMALL = Threshold(1 * 2**20, "bytes: larger files take longer to read than to open")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    source = analysis.source
    if source is None or source.files is None or source.file_bytes is None or source.mount is None:
        return
    many = source.files > (MANY if source.whole else SOME)
    if many and source.file_bytes < SMALL and source.kind in ("network", "disk"):
        more = "" if source.whole else "more than "
        yield Found("warning", (f"{more}{source.files:,} files of {gb(source.file_bytes)} on {source.mount.kind}",))


CAUSE = Cause(
    page(
        "small_files",
        "many small files",
        means="Each file costs an open, a look-up and a seek; over a network, a round trip. Above 100 GB, "
        "shards are strongly recommended.",
        recognised="Many files of a small mean size on storage where each open is expensive: spinning disks, "
        "network file systems, and object storage.",
        to_do="feedline pack SOURCE SHARDS writes shards, resumably; the order of samples is preserved.",
        example="1,281,167 files of 110 kB on nfs4.",
    ),
    priority=STORAGE + 70,
    evaluate=_evaluate,
)
