# SPDX-License-Identifier: Apache-2.0
"""The queue of tasks that were sent to workers and are not yet delivered; also chooses the next worker."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ..workers.worker import TASK
from ..workers.worker_group import Answer, WorkerGroup
from .process_count import ProcessCount


class Task:
    """An index sent to one worker, and the worker's reply.

    Attributes:
        drawn: the index before bad samples were replaced.
        samplers: states of the samplers after drawing `drawn`.
        frame: the reply, once it has arrived.
        deaths: number of workers that died on this task.
    """

    __slots__ = ("deaths", "drawn", "frame", "index", "samplers", "worker")

    def __init__(self, worker: int, index: Any, samplers: list[Any] | None) -> None:
        self.worker, self.index, self.drawn = worker, index, index
        self.samplers = samplers
        self.frame: Answer | None = None
        self.deaths = 0

    @property
    def answer(self) -> Answer:
        assert self.frame is not None
        return self.frame


class TaskQueue:
    """The tasks of all workers. Task numbers continue across epochs, so that replies from an abandoned epoch are
    recognised.

    Attributes:
        sent: number of the next task to send.
        expected: number of the next task to deliver.
        tasks: tasks sent and not yet delivered, by number.
        outstanding: count of tasks without a reply.
        owed: count of tasks still to be sent; negative while the queue shrinks.
        active: for each worker, whether it has samples left in this epoch.
        prefetch: maximum number of tasks per worker.
    """

    def __init__(
        self, group: WorkerGroup, num_workers: int, prefetch: int, in_order: bool, processes: ProcessCount | None
    ) -> None:
        self._group, self._num_workers, self._in_order, self._processes = group, num_workers, in_order, processes
        self.prefetch = prefetch
        self.sent = self.expected = 0
        self.tasks: dict[int, Task] = {}
        self.begin([False] * num_workers)

    def begin(self, active: list[bool]) -> None:
        """Starts an epoch with no tasks."""
        self.active = active
        self.discard()
        self.expected = self.sent
        self._group.skip_before(self.sent)
        self.outstanding = self.owed = 0
        self._per_worker = [0] * self._num_workers
        self.start_at(0)

    def start_at(self, worker: int) -> None:
        """Makes `worker` the first candidate for the next task."""
        every = range(self._num_workers)
        self._cycle: Iterator[int] = itertools.chain(range(worker, self._num_workers), itertools.cycle(every))

    def working(self) -> int:
        """Returns the number of workers that receive tasks; these are always the first workers."""
        return self._num_workers if self._processes is None else self._processes.count

    def is_full(self) -> bool:
        return self.outstanding >= self.prefetch * self._num_workers

    def send(self, index: Any, samplers: list[Any] | None) -> None:
        """Sends a task to the next worker. Drops the task if no worker is active or, with in_order=False, if every
        worker has enough tasks.
        """
        worker = self._next_worker()
        if worker is None:
            return
        self.tasks[self.sent] = Task(worker, index, samplers)
        self._per_worker[worker] += 1
        self.outstanding += 1
        self.sent += 1
        self._group.send(worker, self.sent - 1, TASK, index)

    def _next_worker(self) -> int | None:
        working = self.working()
        limit = self.prefetch * working
        for _ in range(self._num_workers):
            worker = next(self._cycle)
            if worker < working and self.active[worker]:
                if self._in_order:
                    return worker
                if self._per_worker[worker] < limit // sum(self.active[:working]):
                    return worker
        return None

    def send_again(self, number: int, index: Any) -> None:
        """Sends a completed task again with a different index."""
        task = self.tasks[number]
        task.frame, task.index = None, index
        self.outstanding += 1
        self._group.send(task.worker, number, TASK, index)

    def next_number(self, border: int) -> int | None:
        """Returns the number of the next task to deliver; None if no task with a number below `border` is left."""
        while self.expected < border:
            task = self.tasks.get(self.expected)
            if task is not None:
                if task.frame is not None or self.active[task.worker]:
                    return self.expected
                del self.tasks[self.expected]
            self.expected += 1
        return None

    def remove(self, number: int) -> None:
        """Removes a task whose batch will be delivered."""
        del self.tasks[number]
        if number == self.expected:
            self.expected += 1

    def note_delivery(self, worker: int) -> None:
        self._per_worker[worker] -= 1

    def of_worker(self, worker: int) -> list[tuple[int, Task]]:
        """Returns the worker's tasks without a reply, in order."""
        return [(n, task) for n, task in self.tasks.items() if task.worker == worker and task.frame is None]

    def answers_of(self, worker: int) -> list[Answer]:
        """Returns the worker's replies that have not been delivered yet."""
        return [task.frame for task in self.tasks.values() if task.frame is not None and task.worker == worker]

    def discard(self) -> None:
        """Drops all tasks. Replies that arrive later are ignored."""
        for task in self.tasks.values():
            if task.frame is not None:
                task.frame.drop()
        self.tasks.clear()

    def end_epoch(self) -> None:
        """Discards the remaining tasks of this epoch, which workers skip."""
        self.discard()
        self._group.skip_before(self.sent)
        self.expected = self.sent
        self.outstanding = 0

    def discard_before(self, border: int) -> None:
        """Drops the tasks with numbers below `border`, which becomes the next number to deliver."""
        for number in [n for n in self.tasks if n < border]:
            task = self.tasks.pop(number)
            self._per_worker[task.worker] -= 1
            if task.frame is None:
                self.outstanding -= 1
            else:
                task.frame.drop()
        self._group.skip_before(border)
        self.expected = border
