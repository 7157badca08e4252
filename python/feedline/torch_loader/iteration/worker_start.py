# SPDX-License-Identifier: Apache-2.0
"""Starts the workers of an iterator: threads, processes, or sessions in a pool's processes."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch.utils.data import IterDataPipe

from ..options.settings import Settings
from ..options.stream_shares import how_shared
from ..state.loader_progress import LoaderProgress
from ..workers.page_lock import PageLock, page_lock_for
from ..workers.pool_workers import NotShareable, PoolWorkers
from ..workers.process_workers import ProcessWorkers
from ..workers.thread_workers import ThreadWorkers
from ..workers.worker import WorkerConfig
from ..workers.worker_args import WorkerArgs
from ..workers.worker_group import WorkerGroup
from .epoch_context import EpochContext

_log = logging.getLogger("feedline")


def start_workers(
    loader: Any, settings: Settings, progress: LoaderProgress, config: WorkerConfig, args: WorkerArgs, pins: bool
) -> tuple[WorkerGroup, PageLock | None]:
    """`pins`: whether batches are pinned. If so, the memory shared with processes is page-locked if possible."""
    if settings.in_threads:
        return ThreadWorkers(config, args), None
    group = _start_processes(loader, settings, config, args)
    lock = None
    if pins and progress.page_lock_refusal is None:
        lock, progress.page_lock_refusal = page_lock_for(group.ring, group.reader)
        group.reader.page_lock = lock
    return group, lock


def _start_processes(loader: Any, settings: Settings, config: WorkerConfig, args: WorkerArgs) -> ProcessWorkers:
    context = loader.multiprocessing_context or torch.multiprocessing
    pool = settings.pool
    if pool is not None:
        if loader._member is None:  # the loader was unpickled or copied
            loader._member = pool.join(loader)
        try:
            return PoolWorkers(config, args, context, pool, loader._member)
        except NotShareable as refusal:
            _log.warning(
                "DataLoader over %s: workers run in their own processes, because the pool's processes already run. "
                "Arguments that cannot be pickled for the pool: %s",
                type(settings.dataset).__qualname__,
                str(refusal),  # a log record with the exception would keep the iterator alive through its traceback
            )
    return ProcessWorkers(config, args, context)


def has_one_reader(context: EpochContext) -> bool:
    """Returns whether, with central_batching, one worker reads the whole stream, because other workers would repeat its
    samples.

    The single worker sees num_workers=1, so a dataset whose sharding was not recognised also yields all samples.
    """
    settings = context.settings
    if not (settings.central_batching and settings.iterable and context.num_workers > 1):
        return False
    if isinstance(context.dataset, IterDataPipe):  # torch shards these
        return False
    if how_shared(settings.dataset, settings.worker_init_fn):
        return False
    if not context.progress.warned_unsharded:
        context.progress.warned_unsharded = True
        _log.warning(
            "central_batching: could not determine whether %s shards its samples among workers, so one of %d workers "
            "reads it all",
            type(settings.dataset).__qualname__,
            context.num_workers,
        )
    return True
