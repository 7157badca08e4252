# SPDX-License-Identifier: Apache-2.0
"""The dataset is in object storage mounted as a file system."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import STORAGE, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    mount = analysis.source.mount if analysis.source is not None else None
    if mount is not None and mount.family == "objects":
        yield Found("warning", (f"{mount.point} is {mount.client or mount.kind}",))


CAUSE = Cause(
    page(
        "object_mount",
        "the dataset is in object storage mounted as a file system",
        means="Each open and each read is a network request that takes 10 to 100 ms; folders of small files "
        "are slowest, and many of these clients cache nothing.",
        recognised="SOURCE is on a mount of s3fs, goofys, mountpoint-s3, gcsfuse, rclone or similar.",
        to_do="Read the bucket directly, with many concurrent requests: "
        "feedline.open('s3://bucket/shards/{000..146}.tar'), with cache='/local/nvme' for later epochs.",
        example="/mnt/s3 is s3fs.",
    ),
    priority=STORAGE + 10,
    evaluate=_evaluate,
)
