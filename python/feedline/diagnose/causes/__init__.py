# SPDX-License-Identifier: Apache-2.0
"""The rules: each books a share of the loop's time under the names of its causes, in this order.

The first that explains time takes it. Those of WITHOUT_WORKERS do without any sight of what makes the batches.
"""

from collections.abc import Callable

from feedline.diagnose.causes import gpu, host, loop, stages, workers
from feedline.diagnose.causes.case import Case

RULES: tuple[Callable[[Case], None], ...] = (
    gpu.copies,
    loop.synchronisation,
    loop.ranks,
    host.shared_memory,
    workers.drawing,
    workers.handover,
    gpu.precision,
    loop.compute_bound,
    host.quota,
    host.memory,
    workers.startup,
    workers.border,
    workers.straggler,
    workers.nested_pool,
    workers.main_process,
    workers.oversubscribed,
    workers.too_few_workers,
    stages.stages,
)

WITHOUT_WORKERS: tuple[Callable[[Case], None], ...] = (
    gpu.copies,
    loop.synchronisation,
    host.shared_memory,
    gpu.precision,
    loop.compute_bound,
    host.quota,
    host.memory,
)
