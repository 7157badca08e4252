# SPDX-License-Identifier: Apache-2.0
"""/dev/shm is as small as a container's default."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, gb, page

SMALL = Threshold(512 * 2**20, "bytes: 4 workers, 2 ahead, of batches of 64 images are 310 MB")


def _judge(case: Case) -> Iterator[Found]:
    shared = case.machine.shared
    load = case.load
    if shared is None or shared.total_bytes >= SMALL or (load is not None and not load.in_shared_memory):
        return
    if load is not None and load.workers is not None and load.batch_bytes:  # the sum is made, and said where it matters
        return
    yield Found("warning", (f"/dev/shm has {gb(shared.total_bytes)}",))


CAUSE = Cause(
    page(
        "shared_memory_small",
        "/dev/shm is as small as a container's default",
        means="torch's workers hand batches over in files of /dev/shm: 64 images of 224 pixels are 39 MB. "
        "What does not fit ends in a bus error of a worker.",
        recognised="Its size, where the bytes of a batch are not known; where they are, shared_memory_needed sums up.",
        to_do="docker run --shm-size=8g (or --ipc=host); in Kubernetes an emptyDir of medium Memory on "
        "/dev/shm. feedline.DataLoader does not use it.",
        example="/dev/shm has 67 MB.",
    ),
    turn=MACHINE + 100,
    judge=_judge,
)
