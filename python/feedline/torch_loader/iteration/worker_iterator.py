# SPDX-License-Identifier: Apache-2.0
"""The iterator of loaders with workers: torch's iterator class with Feedline's workers and transport.

`Position` draws indices, `TaskQueue` sends tasks, `Replies` receives replies, and `WorkerStates` handles the states of
datasets.
"""

from __future__ import annotations

import collections
import functools
import logging
from collections.abc import Callable
from typing import Any

from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data import _utils as torch_utils
from torch.utils.data import dataloader as torch_dataloader

from ..fetching import fetch
from ..options.auto_options import batches_ahead
from ..state import state
from ..workers.page_lock import PageLock
from ..workers.pool_workers import PoolWorkers
from ..workers.process_workers import ProcessWorkers
from ..workers.worker import AHEAD, BAD, DATA_AND_MORE, END, EPOCH, FAILED, GIVE, WorkerConfig
from ..workers.worker_args import WorkerArgs
from ..workers.worker_group import Answer, WorkerGroup
from .delivery import DeliveredPositions, Leftovers, ShardingCheck
from .epoch_context import EpochContext
from .next_epoch import NextEpoch
from .position import ITERABLE, NO_MORE, Position, fetch_config_of
from .process_control import ProcessControl
from .process_count import process_count_of
from .replies import Replies
from .task_queue import Task, TaskQueue
from .worker_start import has_one_reader, start_workers
from .worker_states import WorkerStates, may_have_state

_log = logging.getLogger("feedline")
_INCOMPLETE = object()  # not a batch: a worker's last samples, which are collated with other workers'


class WorkerIterator(Position, torch_dataloader._MultiProcessingDataLoaderIter):
    """The iterator for num_workers > 0."""

    _worker_group: WorkerGroup
    _page_lock: PageLock | None = None
    _next_epoch: NextEpoch | None = None
    _broken = False  # has raised a fatal error
    _shutdown = True  # workers were not started yet, or have ended
    # set by torch's iterator
    _persistent_workers: bool
    _shared_seed: Any
    _collate_fn: Any
    _drop_last: bool
    _timeout: float

    def __init__(self, loader: Any, wrap: Callable[[Any], Any] | None = None) -> None:
        """`wrap`: a function that returns the dataset that workers read in place of the loader's; None to read the
        loader's own dataset.
        """
        with loader._progress.as_if_begun():
            torch_dataloader._BaseDataLoaderIter.__init__(self, loader)
        self._take_settings(loader)
        self._profile_name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        chosen = self._progress.prefetch if self._settings.prefetches_by_bytes else None
        prefetch = loader.prefetch_factor if chosen is None else chosen.value
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if prefetch <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._worker_init_fn = loader.worker_init_fn
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            self._worker_init_fn = functools.partial(
                torch_dataloader._sharding_worker_init_fn, self._worker_init_fn, self._world_size, self._rank
            )
        processes = self._progress.processes = self._progress.processes or process_count_of(self._settings)
        resumed = self._progress.resumed_base_seed()
        if resumed is not None:
            self._base_seed = resumed
        self._dataset = self._dataset if wrap is None else wrap(self._dataset)
        self._is_wrapped = wrap is not None  # created from the dataset before the workers started
        context = self._context = EpochContext(
            self._progress,
            self._dataset,
            self._dataset_kind == ITERABLE,
            self._num_workers,
            self._persistent_workers,
            self._in_order,
        )
        self._process_control = None if processes is None else ProcessControl(processes, context)
        self._has_one_reader = has_one_reader(context)
        group = self._worker_group = self._start_workers(loader, prefetch)
        self._shutdown = False
        self._workers = group.workers
        self._queue = TaskQueue(group, self._num_workers, prefetch, self._in_order, processes)
        self._states = WorkerStates(group, context, self._queue)
        self._replies = Replies(group, context, self._queue, self._states)
        self._positions = DeliveredPositions(context, self._queue)
        self._sharding = ShardingCheck(context)
        self._leftovers = Leftovers(context, self._collate_fn, self._drop_last)
        self._reset(loader, first_iter=True)

    def _start_workers(self, loader: Any, prefetch: int) -> WorkerGroup:
        settings, progress, context = self._settings, self._progress, self._context
        config = WorkerConfig(
            num_workers=settings.num_workers,
            base_seed=self._base_seed,
            fetch=fetch_config_of(self),
            wants_state=progress.snapshot_steps(settings) if may_have_state(context) else 0,
            budget=max(1, settings.budget_bytes() // self._num_workers),
            ahead=prefetch,
            starting=self._alive(),
            readers=1 if self._has_one_reader else None,
        )
        args = WorkerArgs(self._dataset, self._collate_fn, self._worker_init_fn)
        group, self._page_lock = start_workers(loader, settings, progress, config, args, bool(self._pin_memory))
        return group

    def _alive(self) -> int:
        """Returns the number of workers that have a process or thread; these are always the first workers."""
        return self._num_workers if self._process_control is None else self._process_control.alive

    # -- epochs

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._take_settings(loader)
        progress, context, queue = self._progress, self._context, self._queue
        progress.wait_s = 0.0
        following, self._next_epoch = self._next_epoch, None
        if following is not None and progress.may_use(following, self._settings):
            self._num_yielded = self._bad_count = 0
            self._adopt(following)
            return
        self._before_iter = state.take_randomness(self._settings)
        with progress.as_if_begun():
            torch_dataloader._BaseDataLoaderIter._reset(self, loader, first_iter)
        self._open_epoch(loader)
        context.cursor, context.resume = self._cursor, self._resume
        context.saves_samplers, context.shared_seed = self._asks_samplers, self._shared_seed
        readers = [0] if self._has_one_reader else list(range(self._num_workers))
        self._states.begin_epoch(readers)
        if not first_iter and self._process_control is not None:
            assert isinstance(self._worker_group, ProcessWorkers)  # ProcessControl exists only with processes
            self._process_control.begin_epoch(self._worker_group)
        alive = self._alive()
        queue.begin([worker in readers and worker < alive for worker in range(self._num_workers)])
        self._leftovers.begin_epoch()
        self._positions.begin_epoch(queue.sent + len(self._cursor.waiting))
        again = self._order_to_read_again()
        queue.start_at(self._states.first_worker())
        for worker in range(self._num_workers):
            if queue.active[worker]:
                start = self._states.epoch_start(worker, again.get(worker, []))
                self._worker_group.send(worker, 0, EPOCH, start)
        for _ in range(queue.prefetch * queue.working()):
            self._try_put_index()

    def _adopt(self, following: NextEpoch) -> None:
        """Continues with the epoch that has begun early. The rest of the current epoch is dropped."""
        self._queue.discard_before(following.border)
        self._positions.begin_epoch(following.border)
        self._sampler_iter, self._drawn, self._refills = following.indices, True, None
        self._cursor, self._resume = following.cursor, None
        self._context.cursor, self._context.resume = self._cursor, None
        self._progress.adopt(self._cursor, self._settings)

    def _order_to_read_again(self) -> dict[int, list[Any]]:
        """Returns, for each worker, the batches that a stateful map-style dataset read after its state was saved."""
        entries = (self._resume or {}).get("workers") or []
        if self._context.iterable or not self._cursor.delivered or not self._in_order:
            return {}
        if self._asks_samplers:
            return {worker: entry.get("again", []) for worker, entry in enumerate(entries)}
        since = {worker: entry["since"] for worker, entry in enumerate(entries) if entry["since"]}
        if not since:
            return {}
        self._last_passed = collections.deque(maxlen=(max(since.values()) + 1) * self._num_workers)
        self._draw_first()
        passed = list(self._last_passed)
        first = self._cursor.delivered - len(passed)
        return {
            worker: [i for at, i in enumerate(passed, first) if at % self._num_workers == worker][-count:]
            for worker, count in since.items()
        }

    # -- sending tasks

    def _try_put_index(self) -> None:
        """torch's name. Sends the next task if the order has another index."""
        if self._queue.is_full():
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        if self._next_epoch is None:
            try:
                self._queue.send(self._next_index(), self._samplers)
                return
            except StopIteration:
                self._states.request_last()
            if not self._may_begin_next_epoch():
                return
            self._next_epoch = NextEpoch(
                self._worker_group, self._context, self._queue, self._index_sampler, self._base_seed
            )
        index = next(self._next_epoch.indices, None)
        if index is not None:
            self._queue.send(index, self._samplers)

    def _may_begin_next_epoch(self) -> bool:
        if not (self._settings.prefetch_epochs and self._persistent_workers) or self._refills is not None:
            return False
        if self._asks_samplers or self._states.are_saved():
            return False
        return not self._context.iterable and not isinstance(self._dataset, MapDataPipe)

    def _replace_answered(self) -> None:
        """Sends a task in place of a completed task, and all other tasks that are due."""
        self._queue.owed += 1
        while self._queue.owed > 0:
            self._queue.owed -= 1
            self._try_put_index()

    def _prefetch_by_bytes(self, answer: Answer) -> None:
        """Adapts the number of batches in flight to the largest batch received so far."""
        if answer.nbytes() <= self._progress.batch_bytes:
            return
        self._progress.batch_bytes, queue = answer.nbytes(), self._queue
        chosen = batches_ahead(self._settings.budget_bytes(), self._progress.batch_bytes, self._num_workers)
        self._progress.prefetch = chosen
        if chosen.value == queue.prefetch:
            return
        _log.info("DataLoader over %s: %s", type(self._settings.dataset).__qualname__, chosen)
        queue.owed += (chosen.value - queue.prefetch) * queue.working()
        queue.prefetch = self._worker_group.config.ahead = chosen.value
        for worker in range(self._num_workers):
            if queue.active[worker]:
                self._worker_group.send(worker, 0, AHEAD, chosen.value)

    # -- receiving answers

    def _next_data(self) -> Any:
        """torch's name. Returns the next batch."""
        if self._is_inherited():
            raise self._inherited_error()
        if self._broken:
            raise RuntimeError("DataLoader: this iterator ended with an error; call iter(loader) to create a new one")
        if self._page_lock is not None:
            self._page_lock.settle()
        queue = self._queue
        while True:
            number = queue.next_number(self._border())
            if number is None:
                samples = self._leftovers.take()
                if samples is not None:
                    return self._finished(self._leftovers.collate(samples))
                self._end_epoch()
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            task = queue.tasks[number]
            if task.frame is None:
                self._worker_group.want(task.worker, number)
                arrived = self._take(self._receive(task))
                if arrived is None:
                    continue
                if arrived != number and (self._in_order or arrived >= self._border()):
                    continue
                number, task = arrived, queue.tasks[arrived]
            if self._is_sent_again(number, task):
                continue
            queue.remove(number)
            data = self._deliver(number, task)
            if data is not _INCOMPLETE:
                return data

    def _border(self) -> int:
        """Returns the number of the first task that does not belong to this epoch."""
        return self._queue.sent if self._next_epoch is None else self._next_epoch.border

    def _receive(self, task: Task | None) -> Answer | None:
        try:
            return self._replies.receive(task, self._timeout)
        except BaseException:
            if self._replies.is_fatal:
                self._broken = True
                self._pause()
                self._shutdown_workers()
            raise

    def _take(self, answer: Answer | None) -> int | None:
        """Assigns a reply to its task. Returns the task's number if the reply is a batch."""
        task = None if answer is None else self._queue.tasks.get(answer.task)
        if answer is None or task is None:
            if answer is not None:  # from an abandoned epoch
                answer.drop()
            return None
        self._queue.outstanding -= 1
        if answer.kind == END:
            self._queue.active[task.worker] = False
            self._cursor.ends[task.worker] = answer.decode()
            if not self._persistent_workers:
                self._worker_group.leave(task.worker)
            self._replace_answered()
            return None
        task.frame = answer
        return answer.task

    # -- delivering batches

    def _is_sent_again(self, number: int, task: Task) -> bool:
        """If the task contains bad samples or samples that were used as replacements, sends it again without these
        samples, or ends the epoch if none are left. Returns whether the task contained such samples.
        """
        if self._refills is None:
            return False
        batch, answer, index = self._cursor.delivered, task.answer, None
        if answer.kind == BAD:
            index = self._refilled(batch, task.index, answer.decode())
        elif self._in_order:
            reach = self._refills.batch(batch)
            if len(reach) < len(task.index) and task.index[: len(reach)] == reach:
                index = task.drawn = reach
                answer.drop()
        if index is None:
            return False
        task.frame = None
        if index:
            self._queue.send_again(number, index)
        else:
            self._queue.end_epoch()
        return True

    def _deliver(self, number: int, task: Task) -> Any:
        answer, worker, progress = task.answer, task.worker, self._progress
        self._queue.note_delivery(worker)
        if self._settings.prefetches_by_bytes:
            self._prefetch_by_bytes(answer)
        if self._process_control is not None:
            self._process_control.note_delivery(self._queue)
        self._replace_answered()
        kind, value = answer.kind, answer.decode()
        is_furthest = self._positions.note(number)
        if kind == FAILED:
            self._pass(worker, task.drawn, task.samplers, is_furthest)
            raise value.exception()
        data, more = value if kind == DATA_AND_MORE else (value, NO_MORE)
        del value
        if self._page_lock is not None:
            refusal = self._page_lock.lock(worker)
            if refusal is not None:
                progress.page_lock_refusal = refusal
        if more:
            if "bad" in more:
                self._log_bad(more["bad"], self._cursor.delivered)
            if "print" in more:
                self._sharding.note_first_batch(worker, more["print"])
            if "short" in more:
                self._leftovers.put(worker, data)
                return _INCOMPLETE
        if self._refills:
            self._cursor.refill_end = self._refills.end
        self._cursor.deliver(worker, task.drawn, more, task.samplers, is_furthest)
        return self._finished(data)

    # -- for the loader

    def give(self, name: str, value: Any) -> bool:
        """Sets an attribute of the dataset in all workers, after their current tasks. Returns False if workers ignore
        the attribute, because they read a replacement of the dataset.
        """
        if self._shutdown or self._broken or self._is_inherited():
            return True
        for worker in range(self._alive()):
            self._worker_group.send(worker, 0, GIVE, (name, value))
        return not self._is_wrapped

    def want_states(self, every: int) -> None:
        if self._shutdown or self._is_inherited() or not self._states.request(every):
            return
        if self._cursor.finished and self._persistent_workers and self._next_epoch is None:
            self._states.request_after_epoch()
        is_within = self._cursor.delivered and not self._cursor.finished
        if is_within and not self._progress.fresh_workers and fetch.is_stateful(self._dataset):
            _log.warning(
                "state_dict(): the workers' states were not requested before, so resuming from this state reads the "
                "epoch again with a new dataset, which lacks the state from earlier epochs. To avoid rereading, call "
                "state_dict() before the first epoch, or pass snapshot_every_n_steps=1"
            )

    def await_states(self) -> None:
        if self._shutdown or self._broken or self._is_inherited():
            return
        while self._states.missing():
            self._take(self._receive(None))

    def state_cursor(self) -> state.Cursor:
        """Returns the cursor for a state. At the end of an epoch, this is the next epoch's cursor if that epoch has
        begun.
        """
        following = self._next_epoch
        return following.cursor if self._cursor.finished and following is not None else self._cursor

    # -- torch's names, which profilers read

    @property
    def _send_idx(self) -> int:
        return self._queue.sent

    @property
    def _rcvd_idx(self) -> int:
        return self._queue.expected

    @property
    def _tasks_outstanding(self) -> int:
        return self._queue.outstanding

    def _has_lost_workers(self) -> bool:
        return isinstance(self._worker_group, PoolWorkers) and self._worker_group.has_lost_one()

    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        self._queue.active[worker_id] = False

    def _shutdown_workers(self) -> None:
        if self._shutdown or torch_utils is None or torch_utils.python_exit_status in (True, None):
            return
        self._shutdown = True
        self._queue.discard()
        self._worker_group.close()

    def __del__(self) -> None:
        self._shutdown_workers()
