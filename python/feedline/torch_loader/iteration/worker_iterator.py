# SPDX-License-Identifier: Apache-2.0
"""What `iter(loader)` gives with workers: torch's iterator class, with Feedline's workers and transport inside.

Its parts are mixins, each upon the one before: `Position` (indices drawn, batches counted), `WorkerStates` (where the
workers stand), `Tasks` (out), `Answers` (in), `Deliveries` (to the user).
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data import dataloader as torch_dataloader

from ..options.stream_shares import how_shared
from ..state import state
from ..workers.page_lock import page_lock_for
from ..workers.pool_workers import NotShareable, PoolWorkers
from ..workers.process_workers import ProcessWorkers
from ..workers.thread_workers import ThreadWorkers
from ..workers.worker import EPOCH, GIVE, Spec
from ..workers.worker_args import WorkerArgs
from .deliveries import KEPT, Deliveries
from .position import ITERABLE, fetch_config_of
from .process_count import process_count_of

_log = logging.getLogger("feedline")


class WorkerIterator(Deliveries, torch_dataloader._MultiProcessingDataLoaderIter):
    """num_workers > 0. Task numbers never start again at 0, so that answers of an epoch given up are known as such."""

    def __init__(self, loader: Any, wrap: Callable[[Any], Any] | None = None) -> None:
        """`wrap`: makes the dataset that workers read in place of the loader's; None: they read the loader's."""
        self._shutdown = False
        self._crashes = {}
        self._worker_group = None
        self._page_lock = None
        with loader._progress.as_if_begun():
            torch_dataloader._BaseDataLoaderIter.__init__(self, loader)
        self._take_settings(loader)
        self._profile_name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        prefetch = self._progress.prefetch if self._settings.prefetches_by_bytes else None
        self._prefetch_factor = loader.prefetch_factor if prefetch is None else prefetch.value
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._worker_init_fn = loader.worker_init_fn
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            self._worker_init_fn = functools.partial(
                torch_dataloader._sharding_worker_init_fn, self._worker_init_fn, self._world_size, self._rank
            )
        self._send_idx = self._rcvd_idx = 0
        self._owed_tasks = 0
        self._task_info = {}
        self._ahead = None
        self._prints = {}
        self._broken = False
        self._processes = self._progress.processes = self._progress.processes or process_count_of(self._settings)
        self._alive = self._num_workers
        if self._processes is not None:
            self._alive = min(self._num_workers, self._processes.count + 1)
            self._processes.has(self._alive)
        self._delivered_s = self._waited_s = 0.0
        self._mark = 0
        self._unknown = {}
        resumed = self._progress.resumed_base_seed()
        if resumed is not None:
            self._base_seed = resumed
        self._dataset = self._dataset if wrap is None else wrap(self._dataset)
        self._is_wrapped = wrap is not None  # made from the dataset before the workers started
        self._worker_group = self._make_crew(loader)
        self._workers = self._worker_group.workers
        self._reset(loader, first_iter=True)

    def _make_crew(self, loader: Any) -> Any:
        spec = Spec(
            num_workers=self._settings.num_workers,
            base_seed=self._base_seed,
            config=fetch_config_of(self),
            wants_state=self._progress.snapshot_steps(self._settings) if self._may_have_state() else 0,
            budget=max(1, self._settings.budget_bytes() // self._num_workers),
            ahead=self._prefetch_factor,
            starting=self._alive,
            readers=1 if self._has_one_reader() else None,
        )
        worker_args = WorkerArgs(self._dataset, self._collate_fn, self._worker_init_fn)
        if self._settings.in_threads:
            return ThreadWorkers(spec, worker_args)
        group = self._make_processes(loader, spec, worker_args)
        if self._pin_memory and self._progress.page_lock_refusal is None:
            self._page_lock, self._progress.page_lock_refusal = page_lock_for(group.ring, group.reader)
            group.reader.page_lock = self._page_lock
        return group

    def _make_processes(self, loader: Any, spec: Spec, worker_args: WorkerArgs) -> ProcessWorkers:
        context = loader.multiprocessing_context or torch.multiprocessing
        pool = self._settings.pool
        if pool is not None:
            if loader._member is None:  # unpickled, or a copy
                loader._member = pool.join(loader)
            try:
                return PoolWorkers(spec, worker_args, context, pool, loader._member)
            except NotShareable as refusal:
                _log.warning(
                    "DataLoader over %s: its workers have processes of their own, and not the pool's, which run "
                    "already and cannot be given what these need: %s",
                    type(self._settings.dataset).__qualname__,
                    str(refusal),  # whoever keeps records would keep this iterator by its traceback
                )
        return ProcessWorkers(spec, worker_args, context)

    def _has_lost_workers(self) -> bool:
        return isinstance(self._worker_group, PoolWorkers) and self._worker_group.has_lost_one()

    def _has_one_reader(self) -> bool:
        """With central_batching: others would give the same samples again.

        That one is told to be alone, so a dataset that asks in a way that cannot be seen gives all of them, too.
        """
        settings = self._settings
        if not (settings.central_batching and settings.iterable and self._num_workers > 1):
            return False
        if isinstance(self._dataset, IterDataPipe):  # torch shares these out
            return False
        if how_shared(settings.dataset, settings.worker_init_fn):
            return False
        if not self._progress.warned_unsharded:
            self._progress.warned_unsharded = True
            _log.warning(
                "central_batching: whether %s shares its samples out cannot be seen: one of %d workers reads it all",
                type(settings.dataset).__qualname__,
                self._num_workers,
            )
        return True

    def give(self, name: str, value: Any) -> bool:
        """Sets an attribute of the dataset in all workers, behind the tasks they have. False: they cannot see it."""
        if self._shutdown or self._broken or self._is_inherited():
            return True
        for worker in range(self._alive):
            self._worker_group.send(worker, 0, GIVE, (name, value))
        return not self._is_wrapped

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._take_settings(loader)
        progress = self._progress
        progress.wait_s = 0.0
        ahead, self._ahead = self._ahead, None
        if ahead is not None and progress.may_use(ahead, self._settings):
            self._num_yielded = self._bad_count = 0
            ahead.adopt(self)
            progress.adopt(self._cursor, self._settings)
            return
        self._before_iter = state.take_randomness(self._settings)
        with progress.as_if_begun():
            torch_dataloader._BaseDataLoaderIter._reset(self, loader, first_iter)
        self._open_epoch(loader)
        self._mark += 1
        self._unknown = dict.fromkeys(range(self._num_workers), False) if self._asks_workers() else {}
        self._cursor.keeps_indices = self._asks_samplers and self._asks_workers()
        if not first_iter and self._processes is not None:
            self._settle_processes(self._processes)
        self._workers_status = [worker < self._alive for worker in range(self._num_workers)]
        if self._has_one_reader():
            self._workers_status[1:] = [False] * (self._num_workers - 1)
            self._unknown = {worker: False for worker in self._unknown if worker == 0}
        cycle_from = 0
        self._give_up_tasks()
        self._rcvd_idx = self._send_idx
        self._rest = {}
        self._border = self._send_idx + len(self._cursor.waiting)
        self._worker_group.skip_before(self._send_idx)
        self._tasks_outstanding = self._owed_tasks = 0
        self._workers_num_tasks = [0] * self._num_workers
        self._sampler_ended = False
        again = self._order_to_read_again()
        if self._dataset_kind == ITERABLE and self._cursor.delivered:
            cycle_from = self._first_worker_behind()
        elif self._progress.counted is not None:
            cycle_from = self._progress.counted.first_worker()
        elif self._cursor.delivered:
            cycle_from = self._cursor.delivered % self._num_workers
        cycle = itertools.chain(range(cycle_from, self._num_workers), itertools.cycle(range(self._num_workers)))
        self._worker_queue_idx_cycle = cycle
        for worker in range(self._num_workers):
            if self._workers_status[worker]:
                self._worker_group.send(worker, 0, EPOCH, self._epoch_start(worker, again))
        for _ in range(self._prefetch_factor * self._working()):
            self._try_put_index()

    def _next_data(self) -> Any:
        if self._is_inherited():
            raise self._inherited_error()
        if self._broken:
            raise RuntimeError("DataLoader: this iterator has ended with an error; make another with iter(loader)")
        if self._page_lock is not None:
            self._page_lock.settle()
        while True:
            number = self._wanted()
            if number is None:
                rest = self._batch_of_rest()
                if rest is not None:
                    return rest
                self._end_epoch()
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            task = self._task_info[number]
            if task.frame is None:
                self._worker_group.want(task.worker, number)
                arrived = self._wait(task)
                if arrived is None:
                    continue
                if arrived != number and (self._in_order or not self._is_current(arrived)):
                    continue
                number, task = arrived, self._task_info[arrived]
            if self._settle(number, task):
                continue
            del self._task_info[number]
            if number == self._rcvd_idx:
                self._rcvd_idx += 1
            data = self._deliver(number, task)
            if data is not KEPT:
                return data

    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        self._workers_status[worker_id] = False

    def __del__(self) -> None:
        self._shutdown_workers()
