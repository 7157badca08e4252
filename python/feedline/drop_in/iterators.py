# SPDX-License-Identifier: Apache-2.0
"""What `iter(loader)` gives with workers: torch's iterator class, with Feedline's workers and transport inside."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import logging
import time
from typing import Any

import torch
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data import _utils as torch_utils
from torch.utils.data import dataloader as torch_dataloader

from . import fetch, state
from .choices import batches_ahead
from .course import Course, epochs_of
from .crew import Died, ProcessCrew
from .failures import Failure
from .lowering import PrefixPlan
from .orders import lean_iterator
from .page_lock import PageLock, page_lock_for
from .payload import Payload
from .pool_crew import NotShareable, PoolCrew
from .position import ITERABLE, NO_MORE, Position, recipe_of
from .process_count import ProcessCount, has_room_for, process_count_of
from .settings import Settings
from .stream_shares import how_shared
from .threads import ThreadCrew
from .watchdog import Watchdog
from .worker import (
    AHEAD,
    ASK,
    BAD,
    CRASHED,
    DATA_AND_MORE,
    END,
    EPOCH,
    FAILED,
    GIVE,
    LAST,
    STATE,
    TASK,
    EpochStart,
    Spec,
)

_log = logging.getLogger("feedline")
_KEPT = object()  # no batch: its samples wait for others


class _Task:
    __slots__ = ("deaths", "drawn", "frame", "index", "samplers", "worker")

    def __init__(self, worker: int, index: Any, samplers: list[Any] | None) -> None:
        self.worker, self.index, self.drawn = worker, index, index  # drawn: before refills
        self.samplers = samplers  # what those with a state said of themselves behind `index`
        self.frame: Any = None
        self.deaths = 0


class WorkerIterator(Position, torch_dataloader._MultiProcessingDataLoaderIter):
    """num_workers > 0. Task numbers never start again at 0, so that answers of an epoch given up are known as such."""

    def __init__(self, loader: Any, prefix: PrefixPlan | None = None) -> None:
        """`prefix`: what of reading the dataset runs natively, within each worker."""
        self._shutdown = False
        self._crashes: dict[int, Failure] = {}  # by worker: what it said before it ended
        self._crew: Any = None
        self._page_lock: PageLock | None = None
        with loader._course.as_if_begun():
            torch_dataloader._BaseDataLoaderIter.__init__(self, loader)
        self._take_settings(loader)
        self._profile_name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        prefetch = self._course.prefetch if self._settings.prefetches_by_bytes else None
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
        self._owed_tasks = 0  # below 0: as many that are not given out for now
        self._task_info: dict[int, _Task] = {}
        self._ahead: _NextEpoch | None = None
        self._prints: dict[int, int] = {}
        self._broken = False
        self._processes = self._course.processes = self._course.processes or process_count_of(self._settings)
        self._alive = self._num_workers  # of the workers, the first so many have a process
        if self._processes is not None:
            self._alive = min(self._num_workers, self._processes.count + 1)
            self._processes.has(self._alive)
        self._delivered_s = self._waited_s = 0.0
        self._mark = 0  # of the epoch, for states that workers tell
        self._unknown: dict[int, bool] = {}  # workers whose state is awaited, and whether it is that behind the epoch
        resumed = self._course.resumed_base_seed()
        if resumed is not None:
            self._base_seed = resumed
        self._dataset = self._dataset if prefix is None else prefix.wrap(self._dataset)
        self._has_prefix = prefix is not None  # made of the dataset as it was
        self._crew = self._make_crew(loader)
        self._workers = self._crew.workers
        self._reset(loader, first_iter=True)

    def _make_crew(self, loader: Any) -> Any:
        spec = Spec(
            num_workers=self._settings.num_workers,
            base_seed=self._base_seed,
            recipe=recipe_of(self),
            wants_state=self._course.snapshot_steps(self._settings) if self._may_have_state() else 0,
            budget=max(1, self._settings.budget_bytes() // self._num_workers),
            ahead=self._prefetch_factor,
            starting=self._alive,
            readers=1 if self._has_one_reader() else None,
        )
        payload = Payload(self._dataset, self._collate_fn, self._worker_init_fn)
        if self._settings.in_threads:
            return ThreadCrew(spec, payload)
        crew = self._make_processes(loader, spec, payload)
        if self._pin_memory and self._course.page_lock_refusal is None:
            self._page_lock, self._course.page_lock_refusal = page_lock_for(crew.ring, crew.reader)
            crew.reader.page_lock = self._page_lock
        return crew

    def _make_processes(self, loader: Any, spec: Spec, payload: Payload) -> ProcessCrew:
        context = loader.multiprocessing_context or torch.multiprocessing
        pool = self._settings.pool
        if pool is not None:
            if loader._member is None:  # unpickled, or a copy
                loader._member = pool.join(loader)
            try:
                return PoolCrew(spec, payload, context, pool, loader._member)
            except NotShareable as refusal:
                _log.warning(
                    "DataLoader over %s: its workers have processes of their own, and not the pool's, which run "
                    "already and cannot be given what these need: %s",
                    type(self._settings.dataset).__qualname__,
                    str(refusal),  # whoever keeps records would keep this iterator by its traceback
                )
        return ProcessCrew(spec, payload, context)

    def _has_lost_workers(self) -> bool:
        return isinstance(self._crew, PoolCrew) and self._crew.has_lost_one()

    def _may_have_state(self) -> bool:
        """Of an iterable dataset only the iterators in the workers may have one."""
        return self._dataset_kind == ITERABLE or fetch.is_stateful(self._dataset)

    def want_states(self, every: int) -> None:
        spec = self._crew.spec
        if not every or 0 < spec.wants_state <= every or not self._may_have_state():
            return
        if self._shutdown or self._is_inherited():
            return
        spec.wants_state = every  # of those that are started later, too
        for worker in range(self._num_workers):
            self._crew.send(worker, 0, ASK, every)
        if self._cursor.finished and self._persistent_workers and self._ahead is None:
            self._ask_behind_the_end()
        is_within = self._cursor.delivered and not self._cursor.finished
        if is_within and not self._course.fresh_workers and fetch.is_stateful(self._dataset):
            _log.warning(
                "state_dict(): workers were not asked for their states before, so resuming from here reads the epoch "
                "again with a dataset as you make it, which knows nothing of the epochs before. Call state_dict() "
                "before the first epoch, or give snapshot_every_n_steps=1, if that matters"
            )

    def give(self, name: str, value: Any) -> bool:
        """Sets an attribute of the dataset in all workers, behind the tasks they have. False: they cannot see it."""
        if self._shutdown or self._broken or self._is_inherited():
            return True
        for worker in range(self._alive):
            self._crew.send(worker, 0, GIVE, (name, value))
        return not self._has_prefix

    def _ask_behind_the_end(self) -> None:
        """Nobody wanted states before the epoch ended: workers that live on still have what it left behind."""
        for worker in range(self._num_workers):
            if self._cursor.ends.get(worker) is None:
                self._cursor.ends.pop(worker, None)
                self._unknown[worker] = True
                self._crew.send(worker, 0, LAST, self._mark)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._take_settings(loader)
        course = self._course
        course.wait_s = 0.0
        ahead, self._ahead = self._ahead, None
        if ahead is not None and course.may_use(ahead, self._settings):
            self._num_yielded = self._bad_count = 0
            ahead.adopt(self)
            course.adopt(self._cursor, self._settings)
            return
        self._before_iter = state.take_randomness(self._settings)
        with course.as_if_begun():
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
        self._rest: dict[int, list[Any]] = {}  # by worker: samples that it had left, too few for a batch
        self._border = self._send_idx + len(self._cursor.waiting)  # of tasks that a state of now passes over
        self._crew.skip_before(self._send_idx)
        self._tasks_outstanding = self._owed_tasks = 0
        self._workers_num_tasks = [0] * self._num_workers
        self._sampler_ended = False
        again = self._order_to_read_again()
        if self._dataset_kind == ITERABLE and self._cursor.delivered:
            cycle_from = self._first_worker_behind()
        elif self._cursor.delivered:
            cycle_from = self._cursor.delivered % self._num_workers
        cycle = itertools.chain(range(cycle_from, self._num_workers), itertools.cycle(range(self._num_workers)))
        self._worker_queue_idx_cycle = cycle
        for worker in range(self._num_workers):
            if self._workers_status[worker]:
                self._crew.send(worker, 0, EPOCH, self._epoch_start(worker, again))
        for _ in range(self._prefetch_factor * self._working()):
            self._try_put_index()

    def _working(self) -> int:
        """How many workers get tasks: the first so many."""
        return self._num_workers if self._processes is None else self._processes.count

    def _settle_processes(self, processes: ProcessCount) -> None:
        """Between two epochs: those that did not work end, but for one that may be tried; one more may come."""
        wanted = min(self._num_workers, processes.count + 1)
        while self._alive > wanted:
            self._alive -= 1
            self._crew.leave(self._alive)
        while self._alive < wanted and has_room_for(self._crew.largest_bytes()) and self._crew.rejoin(self._alive):
            self._alive += 1
        processes.has(self._alive)
        processes.begin_epoch()
        self._delivered_s = 0.0

    def _follow_the_loop(self, processes: ProcessCount) -> None:
        """At a hand-over: more or fewer workers get tasks from now on."""
        now_s, waited_s = time.monotonic(), self._course.wait_s or 0.0
        before = processes.count
        if self._delivered_s:
            processes.note(now_s - self._delivered_s, max(0.0, waited_s - self._waited_s))
        self._delivered_s, self._waited_s = now_s, waited_s
        self._owed_tasks += (processes.count - before) * self._prefetch_factor
        if processes.count != before and processes.changes:
            _log.debug("DataLoader over %s: %s", type(self._settings.dataset).__qualname__, processes.changes[-1])

    def _first_worker_behind(self) -> int:
        """Of a stream that is gone on with: whose batch comes first."""
        resume, counted = self._resume, self._course.counted
        assert resume is not None  # or nothing of this epoch was delivered
        if counted is not None and (counted.begins_anew or resume["num_workers"] != self._num_workers):
            return 0
        return int(resume["last_worker"] + 1) % self._num_workers

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
        if not self._course.warned_unsharded:
            self._course.warned_unsharded = True
            _log.warning(
                "central_batching: whether %s shares its samples out cannot be seen: one of %d workers reads it all",
                type(settings.dataset).__qualname__,
                self._num_workers,
            )
        return True

    def _give_up_tasks(self) -> None:
        for task in self._task_info.values():
            if task.frame is not None:
                task.frame.drop()
        self._task_info.clear()

    def _asks_workers(self) -> bool:
        return bool(self._crew.spec.wants_state) and self._may_have_state()

    def _epoch_start(self, worker: int, again: dict[int, list[Any]]) -> EpochStart:
        settings, entry = self._settings, self._cursor.by_worker[worker]
        dataset_epoch = self._course.dataset_epoch(settings.dataset)
        start = EpochStart(self._cursor.epoch, self._shared_seed, dataset_epoch, batch_size=settings.batch_size)
        start.mark = self._mark if worker in self._unknown else None
        if self._resume is not None and self._resume.get("workers") and not self._is_counted():
            taken = self._resume["workers"][worker]
            start.state, start.since, start.ended = taken["state"], taken["since"], taken.get("ended", False)
            if not start.ended:
                entry |= taken
        if self._dataset_kind == ITERABLE:
            start.skip = entry["since"] if start.state is not None else entry["batches"]
            if start.skip and start.state is None:
                _log.warning(
                    "resuming an iterable dataset without state_dict(): worker %d reads and drops %d batches",
                    worker,
                    start.skip,
                )
        start.again = again.get(worker, [])
        return start

    def _is_counted(self) -> bool:
        """Whether the stream itself passes over what was delivered before."""
        return self._resume is not None and "counted" in self._resume and self._course.counted is not None

    def _order_to_read_again(self) -> dict[int, list[Any]]:
        """By worker: the batches that a map-style dataset with a state had read since it was asked for that."""
        entries = (self._resume or {}).get("workers") or []
        if self._dataset_kind == ITERABLE or not self._cursor.delivered or not self._in_order:
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

    # -- tasks

    def _try_put_index(self) -> None:
        if self._tasks_outstanding >= self._prefetch_factor * self._num_workers:
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        if self._ahead is not None:
            self._ahead.put(self)
            return
        try:
            index = self._next_index()
        except StopIteration:
            self._ask_last()
            if self._may_look_ahead():
                self._ahead = _NextEpoch(self, self._settings, self._course)
                self._ahead.put(self)
            return
        self._put_task(index)

    def _put_next(self) -> None:
        """In the place of one that was answered."""
        self._owed_tasks += 1
        while self._owed_tasks > 0:
            self._owed_tasks -= 1
            self._try_put_index()

    def _prefetch_by_bytes(self) -> None:
        """From the largest batch so far: more or fewer are made ahead from now on."""
        chosen = batches_ahead(self._settings.budget_bytes(), self._course.batch_bytes, self._num_workers)
        self._course.prefetch = chosen
        if chosen.value == self._prefetch_factor:
            return
        _log.info("DataLoader over %s: %s", type(self._settings.dataset).__qualname__, chosen)
        self._owed_tasks += (chosen.value - self._prefetch_factor) * self._working()
        self._prefetch_factor = self._crew.spec.ahead = chosen.value
        for worker in range(self._num_workers):
            if self._workers_status[worker]:
                self._crew.send(worker, 0, AHEAD, chosen.value)

    def _ask_last(self) -> None:
        """The order has ended: workers that live on begin the next epoch with the state that they have behind it."""
        if self._sampler_ended or not self._persistent_workers or self._dataset_kind == ITERABLE:
            return
        self._sampler_ended = True
        if self._asks_workers():
            for worker in range(self._num_workers):
                self._crew.send(worker, 0, LAST, self._mark)

    def _may_look_ahead(self) -> bool:
        if not (self._settings.prefetch_epochs and self._persistent_workers) or self._refills is not None:
            return False
        if self._asks_samplers or self._asks_workers():
            return False
        return self._dataset_kind != ITERABLE and not isinstance(self._dataset, MapDataPipe)

    def _put_task(self, index: Any) -> None:
        working = self._working()
        limit = self._prefetch_factor * working
        for _ in range(self._num_workers):
            worker = next(self._worker_queue_idx_cycle)
            if worker < working and self._workers_status[worker]:
                if self._in_order:
                    break
                if self._workers_num_tasks[worker] < limit // sum(self._workers_status[:working]):
                    break
        else:
            return
        self._task_info[self._send_idx] = _Task(worker, index, self._samplers)
        self._workers_num_tasks[worker] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1
        self._crew.send(worker, self._send_idx - 1, TASK, index)

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
                self._crew.want(task.worker, number)
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
            if data is not _KEPT:
                return data

    def _wanted(self) -> int | None:
        """The task that comes next; None at the end of the epoch."""
        border = self._send_idx if self._ahead is None else self._ahead.border
        while self._rcvd_idx < border:
            task = self._task_info.get(self._rcvd_idx)
            if task is not None:
                if task.frame is not None or self._workers_status[task.worker]:
                    return self._rcvd_idx
                del self._task_info[self._rcvd_idx]
            self._rcvd_idx += 1
        return None

    def _is_current(self, number: int) -> bool:
        return self._ahead is None or number < self._ahead.border

    def _wait(self, task: _Task) -> int | None:
        """Until a task's answer is there; its number. None when something else changed."""
        return self._take(self._receive(task))

    def _take(self, frame: Any) -> int | None:
        """What a worker has answered; the number of the task, where that is a batch."""
        answered = self._task_info.get(frame.task)
        if answered is None:  # of an epoch that was given up
            frame.drop()
            return None
        self._tasks_outstanding -= 1
        if frame.kind == END:
            self._workers_status[answered.worker] = False
            self._cursor.ends[answered.worker] = frame.decode()
            if not self._persistent_workers:
                self._crew.leave(answered.worker)
            self._put_next()
            return None
        answered.frame = frame
        return frame.task

    def _is_unknown(self, worker: int) -> bool:
        """Whether a state of this moment wants what this worker has yet to tell."""
        if worker not in self._unknown:
            return False
        if self._cursor.finished:
            return self._persistent_workers and worker not in self._cursor.ends
        if not self._workers_status[worker]:
            return False
        entry = self._cursor.by_worker[worker]
        return not entry["batches"] and entry["state"] is None and not self._unknown[worker]

    def await_states(self) -> None:
        if self._shutdown or self._broken or self._is_inherited():
            return
        while any(self._is_unknown(worker) for worker in range(self._num_workers)):
            frame = self._receive(None)
            if frame is not None:
                self._take(frame)

    def _note_state(self, worker: int, frame: Any) -> None:
        mark, is_last, told = frame.decode()
        if mark != self._mark or worker not in self._unknown:  # of an epoch that was given up
            return
        if is_last:
            self._cursor.ends[worker] = told
            return
        self._unknown[worker] = True
        entry = self._cursor.by_worker[worker]
        if not entry["batches"] and entry["state"] is None:
            entry["state"], entry["since"] = told, 0

    def _receive(self, task: _Task | None) -> Any:
        """A worker's answer to some task. Without one: a state that a worker has told, or nothing, will do too."""
        event = self._crew.receive(0)
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        watchdog = None
        while True:
            if isinstance(event, Died):
                self._handle_death(event)
            elif event is not None and event[1].kind == CRASHED:
                self._note_crash(*event)
            elif event is not None and event[1].kind == STATE:
                self._note_state(*event)
                if task is None:
                    return None
                event = self._crew.receive(0)
                continue
            elif event is not None:
                return event[1]
            if watchdog is None:
                if task is None:
                    awaited = [worker for worker in range(self._num_workers) if self._is_unknown(worker)]
                elif self._in_order:
                    awaited = [task.worker]
                else:
                    awaited = sorted({t.worker for t in self._task_info.values()})
                watchdog = Watchdog(self._crew, awaited, self._settings.stall_timeout)
            try:
                slice_s = watchdog.step()
            except BaseException:
                self._break()
                raise
            if deadline is not None:
                slice_s = min(slice_s, deadline - time.monotonic())
                if slice_s <= 0:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            began = time.monotonic()
            event = self._crew.receive(slice_s)
            self._course.wait_s = (self._course.wait_s or 0.0) + time.monotonic() - began

    def state_cursor(self) -> state.Cursor:
        """What the state is to be made of: at the end of an epoch, the next one where that has begun."""
        return self._ahead.cursor if self._cursor.finished and self._ahead is not None else self._cursor

    def _note_crash(self, worker: int, frame: Any) -> None:
        self._crashes[worker] = frame.decode()
        if isinstance(self._crew, (ThreadCrew, PoolCrew)):  # of others a process's end follows
            self._handle_death(Died(worker, None))

    def _handle_death(self, event: Died) -> None:
        worker, crash = event.worker, self._crashes.pop(event.worker, None)
        error: Any = event.error if crash is None else crash.exception()
        mine = [
            (number, task) for number, task in self._task_info.items() if task.worker == worker and task.frame is None
        ]
        current = mine[0][1] if mine else None
        may_replace = self._settings.on_error != "raise" and isinstance(self._crew, ProcessCrew)
        if not may_replace or (current is not None and current.deaths >= 1):
            self._break()
            raise error
        _log.warning("%s A fresh worker takes over.", event.error if crash is None else crash.summary)
        if current is not None:
            current.deaths += 1
        held = [t.frame for t in self._task_info.values() if t.frame is not None and t.worker == worker]
        self._crew.respawn(worker, [block for frame in held for block in frame.occupied()])
        for given in self._course.given.items():
            self._crew.send(worker, 0, GIVE, given)
        start = self._epoch_start(worker, {})
        if self._dataset_kind == ITERABLE:
            entry = self._cursor.by_worker[worker]
            start.state, start.skip = entry["state"], len(held)
            start.skip += entry["since"] if start.state is not None else entry["batches"]
        self._crew.send(worker, 0, EPOCH, start)
        for number, task in mine:
            self._crew.send(worker, number, TASK, task.index)

    def _break(self) -> None:
        self._broken = True
        self._pause()
        self._shutdown_workers()

    # -- answers

    def _settle(self, number: int, task: _Task) -> bool:
        """Makes a batch whole again that had bad samples, or that refills have shortened. True while it is away."""
        if self._refills is None:
            return False
        batch = self._cursor.delivered
        index = None
        if task.frame.kind == BAD:
            index = self._refilled(batch, task.index, task.frame.decode())
        elif self._in_order and task.deaths >= 0:
            reach = self._refills.batch(batch)
            if len(reach) < len(task.index) and task.index[: len(reach)] == reach:
                index = task.drawn = reach
                task.frame.drop()
        if index is None:
            return False
        task.frame = None
        if not index:
            self._give_up_after(number)
            return True
        task.index = index
        self._tasks_outstanding += 1
        self._crew.send(task.worker, number, TASK, index)
        return True

    def _give_up_after(self, number: int) -> None:
        """The order ends before this batch, for its samples were used as refills."""
        self._give_up_tasks()
        self._crew.skip_before(self._send_idx)
        self._rcvd_idx = self._send_idx
        self._tasks_outstanding = 0

    def _deliver(self, number: int, task: _Task) -> Any:
        self._workers_num_tasks[task.worker] -= 1
        if self._settings.prefetches_by_bytes and task.frame.nbytes() > self._course.batch_bytes:
            self._course.batch_bytes = task.frame.nbytes()
            self._prefetch_by_bytes()
        if self._processes is not None:
            self._follow_the_loop(self._processes)
        self._put_next()
        kind, value = task.frame.kind, task.frame.decode()
        is_furthest = self._note_place(number)
        if kind == FAILED:
            self._pass(task.worker, task.drawn, task.samplers, is_furthest)
            raise value.exception()
        data, more = value if kind == DATA_AND_MORE else (value, NO_MORE)
        del value
        if self._page_lock is not None:
            refusal = self._page_lock.lock(task.worker)
            if refusal is not None:
                self._course.page_lock_refusal = refusal
        if more:
            if "bad" in more:
                self._log_bad(more["bad"], self._cursor.delivered)
            if "print" in more:
                self._compare_print(task.worker, more["print"])
            if "short" in more:
                self._rest[task.worker] = data
                return _KEPT
        if self._refills:
            self._cursor.refill_end = self._refills.end
        self._cursor.deliver(task.worker, task.drawn, more, task.samplers, is_furthest)
        return self._finished(data)

    def _note_place(self, number: int) -> bool | None:
        """With in_order=False: whether no task behind this one was answered. A state names those in front that wait."""
        if self._in_order or self._dataset_kind == ITERABLE:
            return None
        is_furthest = number >= self._border
        self._border = max(self._border, number + 1)
        self._cursor.waiting = [t.drawn for n, t in self._task_info.items() if n < self._border]
        return is_furthest

    def _compare_print(self, worker: int, crc: int) -> None:
        other = self._prints.setdefault(crc, worker)
        if other != worker and not self._course.warned_unsharded:
            self._course.warned_unsharded = True
            _log.warning(
                "workers %d and %d began with the same batch: this IterableDataset seems not to be sharded by "
                "get_worker_info(), so every sample would come %d times",
                other,
                worker,
                self._num_workers,
            )

    def _batch_of_rest(self) -> Any:
        """With central_batching, when all workers have ended: a batch of what they had left; None: there is none.

        Their positions in a state are in front of these samples, which are read again where it is loaded.
        """
        size = self._settings.batch_size
        if not self._rest or size is None:
            return None
        first = self._cursor.taken
        samples = list(itertools.chain.from_iterable(self._rest[worker] for worker in sorted(self._rest)))
        samples = samples[first : first + size]
        if not samples or (self._drop_last and len(samples) < size):
            self._rest = {}
            return None
        self._cursor.taken += len(samples)
        self._cursor.delivered += 1
        seed = self._settings.seed
        with fetch.untouched_generators() if seed is not None else contextlib.nullcontext():
            if seed is not None:
                fetch.seed_everything(seed, self._cursor.epoch, "collate", first)
            return self._finished(self._collate_fn(samples))

    # -- the end

    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        self._workers_status[worker_id] = False

    def _shutdown_workers(self) -> None:
        if self._shutdown or torch_utils is None or torch_utils.python_exit_status in (True, None):
            return
        self._shutdown = True
        if self._crew is not None:
            self._give_up_tasks()
            self._crew.close()

    def __del__(self) -> None:
        self._shutdown_workers()


class _NextEpoch:
    """prefetch_epochs=True: the order of the next epoch, drawn while the last batches of this one are on their way.

    Workers take messages in order, so they begin the epoch between the two epochs' tasks.
    """

    def __init__(self, iterator: WorkerIterator, settings: Settings, course: Course) -> None:
        self.border = iterator._send_idx  # tasks from here on are of the next epoch
        course.begin(settings)
        self.epoch = course.epoch
        self.sampler_epochs = epochs_of(settings)
        self.cursor = state.Cursor(self.epoch, iterator._num_workers)
        self.cursor.base_seed = iterator._base_seed
        self.cursor.samplers, self.cursor.epochs = state.take_samplers(settings.order)
        indices = iter(iterator._index_sampler)
        self.cursor.randomness = state.take_randomness(settings)
        self._indices = lean_iterator(iterator._index_sampler, indices)
        start = EpochStart(self.epoch, dataset_epoch=course.dataset_epoch(settings.dataset, next_epoch=True))
        for worker in range(iterator._num_workers):
            iterator._crew.send(worker, 0, EPOCH, start)

    def put(self, iterator: WorkerIterator) -> None:
        index = next(self._indices, None)
        if index is not None:
            iterator._put_task(index)

    def adopt(self, iterator: WorkerIterator) -> None:
        """The next epoch becomes the one that is iterated; what is left of this one is given up."""
        for number in [n for n in iterator._task_info if n < self.border]:
            task = iterator._task_info.pop(number)
            iterator._workers_num_tasks[task.worker] -= 1
            if task.frame is None:
                iterator._tasks_outstanding -= 1
            else:
                task.frame.drop()
        iterator._crew.skip_before(self.border)
        iterator._rcvd_idx = iterator._border = self.border
        iterator._sampler_iter, iterator._drawn, iterator._refills = self._indices, True, None
        iterator._cursor, iterator._resume = self.cursor, None
