# SPDX-License-Identifier: Apache-2.0
"""Hooks on torch's workers: their tasks, and the packing of batches, which the loop's process unpacks."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from feedline.profiler.probe import events, failures
from feedline.profiler.probe.recorder import Recorder, clock, cpu_clock
from feedline.profiler.probe.sampling import WorkSampler

LATE_TIMES = 3  # multiple of the usual time of a task at which it is always recorded
_WEIGHT = 1 / 8  # weight of a task in the usual time
_EVENTS_PER_TASK = 5  # including fetch, collation and packing
_PASSING = 2 / 3  # multiple of an event: cost of all hooks of an unrecorded task; 7 us measured, half of it in a tight
# loop


class _Tasks:
    """Selects which of a worker's tasks are recorded, and counts all other tasks.

    A recorded task includes its parts: samples if details are due, collation, and packing. Other tasks are only timed,
    to detect late tasks.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._local = recorder, recorder.local
        self._pace = WorkSampler()
        self._next = -1  # number of the next recorded task, which may be another worker's
        self._begin = self._cpu = self._hooks = 0
        self._unseen = self._since = 0  # tasks since the last WORK: unrecorded ones, and all
        self._took = self._used = 0  # its duration
        self._usual_ns = self._late_ns = 0.0
        self._told_ns = clock()  # time of the last WORK

    def begun(self, number: int) -> None:
        if number > self._next:
            self._next = self._pace.first_from(number)
        local = self._local
        local.by_task, local.unseen = True, number != self._next
        if number == self._next:
            self._hooks = local.charged_ns + local.hooks_ns
        self._begin, self._cpu = clock(), cpu_clock()

    def ended(self, number: int, item: Any) -> None:
        begin, self._begin = self._begin, 0
        if not begin:
            return
        self._since += 1
        took = clock() - begin
        if number == self._next or took > self._late_ns:
            self._tell(number, begin, took, item)
        else:
            self._unseen += 1

    def epoch_ended(self) -> None:
        self._tell_unseen()
        self._recorder.opened.write()
        self._recorder.waits.write()
        self._next = -1  # numbers restart

    def _tell(self, number: int, begin: int, took: int, item: Any) -> None:
        recorder, local, ended = self._recorder, self._local, cpu_clock()
        # costs that unrecorded tasks do not have
        hooks = 0 if local.unseen else local.charged_ns + local.hooks_ns - self._hooks
        took, used = max(took - hooks, 0), max(ended - self._cpu - hooks, 0)
        straggles = took > self._late_ns > 0
        late = straggles and (self._unseen > 0 or self._pace.level > 0)
        kind, longest = events.LATE_WORK if late else events.WORK, 0 if local.unseen else local.longest
        recorder.record(kind, begin + hooks, used, number, longest)
        if recorder.sending is not None:
            recorder.sending[id(item)] = events.PICKLE_BESIDE if late else events.PICKLE
        self._usual_ns += _WEIGHT * (min(took, self._late_ns or took) - self._usual_ns) if self._usual_ns else took
        self._late_ns = LATE_TIMES * self._usual_ns
        if not straggles:
            self._took, self._used = took, used
        if not late:
            self._tell_unseen()
            self._choose()
        recorder.paid(cpu_clock() - ended + recorder.call_ns, 0, recorder.taken())  # including begun()

    def _tell_unseen(self) -> None:
        """Records the unrecorded tasks, assuming that they were like the last recorded task."""
        if self._unseen:
            passed, self._unseen = self._unseen, 0
            begin = max(clock() - passed * self._took, 0)
            self._recorder.record(events.UNSEEN_WORK, begin, passed * self._used, passed)
            self._recorder.passed(int(passed * _PASSING * self._recorder.event_ns))

    def _choose(self) -> None:
        """Sets the recording rate from the mean time between tasks; a worker that waits for tasks can record every
        task.
        """
        recorder, now = self._recorder, clock()
        standing_for = recorder.standing_for(_EVENTS_PER_TASK * recorder.event_ns)
        self._pace.choose((now - self._told_ns) / self._since, standing_for)
        self._told_ns, self._since, self._next = now, 0, -1


class _TaskQueue:
    """The worker's end of its task queue."""

    def __init__(self, queue: Any, tasks: _Tasks, on_first: Callable[[], None]) -> None:
        self._queue, self._tasks, self._on_first = queue, tasks, on_first
        self._asked = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def get(self, *arguments: Any, **options: Any) -> Any:
        if not self._asked:
            self._asked = True
            self._on_first()
        task = self._queue.get(*arguments, **options)
        if isinstance(task, tuple) and len(task) == 2:
            self._tasks.begun(task[0])
        else:
            self._tasks.epoch_ended()
        return task


class _ResultQueue:
    """The worker's end of the queue of finished batches."""

    def __init__(self, queue: Any, tasks: _Tasks) -> None:
        self._queue, self._tasks = queue, tasks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def put(self, item: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(item, tuple) and isinstance(item[0], int):
            self._tasks.ended(item[0], item)
        return self._queue.put(item, *arguments, **options)


def patch_torch_worker(module: Any, recorder: Recorder) -> None:
    original = module._worker_loop

    # preserves the name, by which spawned workers find the function, so that their own probe wraps it
    @functools.wraps(original)
    def _worker_loop(dataset_kind: Any, dataset: Any, index_queue: Any, data_queue: Any, *others: Any) -> None:
        begin, cpu = clock(), cpu_clock()
        recorder.in_worker, recorder.sending = True, {}
        failures.drop_inherited_stack()  # torch's handlers must be installed first
        worker = others[6] if len(others) > 6 and isinstance(others[6], int) else 0

        def on_first() -> None:
            failures.keep_stack(recorder.session)  # after torch has installed its own handlers, which run afterwards
            started = events.WORKERS * recorder.passes  # a forked worker inherits this number from the loop's process
            recorder.record(events.READY, begin, cpu_clock() - cpu, loop_process(), worker + started)

        seen = _Tasks(recorder)
        tasks, results = _TaskQueue(index_queue, seen, on_first), _ResultQueue(data_queue, seen)
        return original(dataset_kind, dataset, tasks, results, *others)

    module._worker_loop = _worker_loop


def loop_process() -> int:
    """Returns the id of the process that runs the loop, even if a fork server created this process."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    return os.getppid() if parent is None or parent.pid is None else parent.pid


def patch_pickling(recorder: Recorder) -> None:
    from multiprocessing import reduction

    pickler = reduction.ForkingPickler
    dumps, loads = pickler.dumps, pickler.loads

    def timed_dumps(kind: Any, value: Any, protocol: Any = None) -> Any:
        if not recorder.in_worker:
            return dumps(value, protocol)
        sending, local = recorder.sending, recorder.local
        event = events.PICKLE if sending is None else sending.pop(id(value), None)
        if event is not None:
            local.sends = True
        elif not local.sends:
            return dumps(value, protocol)  # arguments of a pool inside a worker are not sent to the loop
        begin = clock()
        timed = event is not None or bool(sending) or begin < local.sent_until
        cpu = cpu_clock() if timed else 0
        data = dumps(value, protocol)
        if timed or sending:  # a recorded batch waits for it, since its start or later
            ended, now = cpu_clock(), clock()
            took = now - begin
            used = ended - cpu if timed else int(took * local.packing_runs)
            if event is not None:
                local.packing_runs, local.sent_until = min(used / max(took, 1), 1.0), now + 2 * took
            recorder.record(events.PICKLE_BESIDE if event is None else event, begin, used, len(data))
            recorder.inside(ended)
            recorder.settle()  # a separate thread does this
        return data

    def timed_loads(data: Any, *arguments: Any, **options: Any) -> Any:
        if not recorder.local.in_next:
            return loads(data, *arguments, **options)
        begin, cpu = clock(), cpu_clock()
        value = loads(data, *arguments, **options)
        ended = cpu_clock()
        recorder.record(events.UNPICKLE, begin, ended - cpu, len(data))
        recorder.inside(ended)
        return value

    pickler.dumps = classmethod(timed_dumps)  # type: ignore[assignment]
    pickler.loads = staticmethod(timed_loads)  # type: ignore[assignment]
