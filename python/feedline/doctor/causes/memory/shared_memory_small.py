# SPDX-License-Identifier: Apache-2.0
"""/dev/shm has only a container's default size."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, gb, page

SMALL = Threshold(512 * 2**20, "size in bytes; 4 workers with 2 prefetched batches of 64 images need 310 MB")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    shared = analysis.machine.shared
    load = analysis.load
    if shared is None or shared.total_bytes >= SMALL or (load is not None and not load.in_shared_memory):
        return
    if load is not None and load.workers is not None and load.batch_bytes:  # see shared_memory_needed
        return
    yield Found("warning", (f"/dev/shm has {gb(shared.total_bytes)}",))


CAUSE = Cause(
    page(
        "shared_memory_small",
        "/dev/shm has only a container's default size",
        means="torch's workers pass batches via files in /dev/shm: 64 images of 224 pixels are 39 MB. If the batches "
        "do not fit, a worker is killed by a bus error.",
        recognised="/dev/shm is small and the size of a batch is unknown; if the size is known, see "
        "shared_memory_needed.",
        to_do="Use docker run --shm-size=8g (or --ipc=host); in Kubernetes, mount an emptyDir of medium Memory on "
        "/dev/shm. feedline.DataLoader does not use /dev/shm.",
        example="/dev/shm has 67 MB.",
    ),
    priority=MACHINE + 100,
    evaluate=_evaluate,
)
