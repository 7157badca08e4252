# SPDX-License-Identifier: Apache-2.0
"""The dataset lies on a server."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import STORAGE, Case, Cause, Found, page

SMALL = Threshold(65536, "bytes of a read: NFS takes 1 MB today")


def _judge(case: Case) -> Iterator[Found]:
    mount = case.source.mount if case.source is not None else None
    if mount is None or mount.family not in ("nfs", "parallel", "share"):
        return
    words = f"{mount.point} is {mount.kind} of {mount.device}"
    slow = [name for name in ("sync", "noac", "soft") if mount.option(name) is not None]
    size = mount.option("rsize") or ""
    if size.isdecimal() and int(size) < SMALL:
        slow.append(f"rsize={size}")
    yield Found("warning" if slow else "note", (words, *([f"mounted with {', '.join(slow)}"] if slow else [])))


CAUSE = Cause(
    page(
        "network_storage",
        "the dataset lies on a server",
        means="All clients share what the server and the network give: more workers do not raise it. Small "
        "files cost a round trip each to open.",
        recognised="The mount of SOURCE is NFS, a parallel file system or a share; a warning where its options "
        "make it worse: sync, noac, soft, or reads below 64 kB.",
        to_do="feedline stage SOURCE /local/nvme copies it once; or feedline.open(..., cache='/local/nvme'); "
        "pack small files: feedline pack.",
        example="/data is nfs4 of server:/export.",
    ),
    turn=STORAGE + 20,
    judge=_judge,
)
