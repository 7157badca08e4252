# SPDX-License-Identifier: Apache-2.0
"""The dataset is on a spinning disk."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import STORAGE, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    source = analysis.source
    if source is not None and source.kind == "disk" and source.mount is not None:
        model = f" ({source.model})" if source.model else ""
        yield Found("warning", (f"{source.mount.point} is on a spinning disk{model}",))


CAUSE = Cause(
    page(
        "spinning_disk",
        "the dataset is on a spinning disk",
        means="A spinning disk reaches about 100 random reads per second, and 150 MB/s sequentially: shuffled small "
        "files are read at 100 per second, regardless of the number of workers, and more workers cause more "
        "seeks.",
        recognised="The block device of SOURCE reports that it is rotational. Virtual disks do not report this.",
        to_do="Copy the dataset to SSD or NVMe (feedline stage), or pack it into shards that are read sequentially: "
        "feedline pack.",
        example="/data is on a spinning disk (ST8000NM000A).",
    ),
    priority=STORAGE + 30,
    evaluate=_evaluate,
)
