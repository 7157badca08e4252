# SPDX-License-Identifier: Apache-2.0
"""/dev/shm is too small for the planned loader."""

from __future__ import annotations

from collections.abc import Iterator

from ....machine.planned_load import need_of
from ...rules import LOAD, Analysis, Cause, Found, gb, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    load, shared = analysis.load, analysis.machine.shared
    if load is None or shared is None or not load.in_shared_memory or not load.batch_bytes or not load.workers:
        return
    waiting = need_of(load).waiting
    if waiting > shared.free_bytes:
        parts = f"{load.workers} workers x {load.prefetch} prefetched x {gb(load.batch_bytes)}"
        ranks = f"{load.ranks} ranks x " if load.ranks > 1 else ""
        size = f"{-(-waiting * 2 // 10**9)}g"
        fix = CAUSE.page.to_do.replace("SIZE", size)
        yield Found("critical", (f"{ranks}{parts} = {gb(waiting)}, but {gb(shared.free_bytes)} free in /dev/shm",), fix)


CAUSE = Cause(
    page(
        "shared_memory_needed",
        "/dev/shm is too small for the planned loader",
        means="torch's workers pass batches via files in /dev/shm. If the batches do not fit, a worker is killed by a "
        "bus error with the message RuntimeError: DataLoader worker is killed by signal. Containers have only 64 "
        "MB of /dev/shm by default.",
        recognised="workers x prefetch x batch exceeds the free space of /dev/shm.",
        to_do="Use docker run --shm-size=SIZE (or --ipc=host); in Kubernetes, mount an emptyDir of medium Memory on "
        "/dev/shm. feedline.DataLoader does not use /dev/shm.",
        example="4 workers x 2 prefetched x 154 MB = 1.2 GB, but 64 MB free in /dev/shm.",
    ),
    priority=LOAD + 30,
    evaluate=_evaluate,
)
