# SPDX-License-Identifier: Apache-2.0
"""The dataset lies on a disk that spins."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import STORAGE, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    source = case.source
    if source is not None and source.kind == "disk" and source.mount is not None:
        model = f" ({source.model})" if source.model else ""
        yield Found("warning", (f"{source.mount.point} is on a disk that spins{model}",))


CAUSE = Cause(
    page(
        "spinning_disk",
        "the dataset lies on a disk that spins",
        means="It gives some 100 reads a second from places that lie apart, and 150 MB/s in a row: shuffled "
        "small files get 100 of them a second, whatever the workers do, and more workers make it seek "
        "more.",
        recognised="The block device under SOURCE says that it rotates. Virtual disks do not tell.",
        to_do="Copy it to SSD or NVMe (feedline stage), or pack it into shards that are read in a row: feedline pack.",
        example="/data is on a disk that spins (ST8000NM000A).",
    ),
    turn=STORAGE + 30,
    judge=_judge,
)
