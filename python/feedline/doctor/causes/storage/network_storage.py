# SPDX-License-Identifier: Apache-2.0
"""The dataset is on a file server."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import STORAGE, Analysis, Cause, Found, page

SMALL = Threshold(65536, "size of a read in bytes; NFS uses 1 MB today")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    mount = analysis.source.mount if analysis.source is not None else None
    if mount is None or mount.family not in ("nfs", "parallel", "share"):
        return
    words = f"{mount.point} is {mount.kind}, mounted from {mount.device}"
    slow = [name for name in ("sync", "noac", "soft") if mount.option(name) is not None]
    size = mount.option("rsize") or ""
    if size.isdecimal() and int(size) < SMALL:
        slow.append(f"rsize={size}")
    yield Found("warning" if slow else "note", (words, *([f"mounted with {', '.join(slow)}"] if slow else [])))


CAUSE = Cause(
    page(
        "network_storage",
        "the dataset is on a file server",
        means="All clients share the bandwidth of the server and the network, which more workers do not "
        "increase. Opening "
        "a small file costs a round trip.",
        recognised="SOURCE is on NFS, a parallel file system or a network share. It is a warning if mount options make "
        "reads slower: sync, noac, soft, or reads below 64 kB.",
        to_do="feedline stage SOURCE /local/nvme copies the dataset once; feedline.open(..., cache='/local/nvme') "
        "copies it during the first epoch. Pack small files with feedline pack.",
        example="/data is nfs4, mounted from server:/export.",
    ),
    priority=STORAGE + 20,
    evaluate=_evaluate,
)
