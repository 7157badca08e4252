# SPDX-License-Identifier: Apache-2.0
"""The next epoch with prefetch_epochs=True, whose order is drawn while the last batches of the current epoch are in
flight.
"""

from __future__ import annotations

from typing import Any

from ..state import state
from ..state.loader_progress import epochs_of
from ..workers.worker import EPOCH, EpochStart
from ..workers.worker_group import WorkerGroup
from .epoch_context import EpochContext
from .orders import lean_iterator
from .task_queue import TaskQueue


class NextEpoch:
    """An epoch that has begun early. Workers read messages in order, so they begin the epoch between the tasks of the
    two epochs.

    Attributes:
        border: number of the first task of the next epoch.
        indices: iterator over the order.
    """

    def __init__(
        self, group: WorkerGroup, context: EpochContext, queue: TaskQueue, index_sampler: Any, base_seed: int
    ) -> None:
        settings, progress = context.settings, context.progress
        self.border = queue.sent
        progress.begin(settings)
        self.epoch = progress.epoch
        self.sampler_epochs = epochs_of(settings)
        self.cursor = state.Cursor(self.epoch, context.num_workers)
        self.cursor.base_seed = base_seed
        self.cursor.samplers, self.cursor.epochs = state.take_samplers(settings.order)
        indices = iter(index_sampler)
        self.cursor.randomness = state.take_randomness(settings)
        self.indices = lean_iterator(index_sampler, indices)
        start = EpochStart(self.epoch, dataset_epoch=progress.dataset_epoch(settings.dataset, next_epoch=True))
        for worker in range(context.num_workers):
            group.send(worker, 0, EPOCH, start)
