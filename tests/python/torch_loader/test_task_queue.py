# SPDX-License-Identifier: Apache-2.0
"""The parts of an iterator with workers, each tested separately: sending tasks, answering them, and receiving
answers.
"""

import types

import pytest

pytest.importorskip("torch")

from feedline.torch_loader.iteration.epoch_context import EpochContext
from feedline.torch_loader.iteration.replies import Replies
from feedline.torch_loader.iteration.task_queue import TaskQueue
from feedline.torch_loader.iteration.worker_states import WorkerStates
from feedline.torch_loader.state.loader_progress import LoaderProgress
from feedline.torch_loader.state.state import Cursor
from feedline.torch_loader.workers.worker import DATA, STATE
from feedline.torch_loader.workers.worker_group import Answer


class Reply:
    def __init__(self, task, kind=DATA, value=None):
        self.task, self.kind, self.value, self.dropped = task, kind, value, False

    def nbytes(self):
        return 0

    def decode(self):
        return self.value

    def occupied(self):
        return []

    def drop(self):
        self.dropped = True


class Group:
    """Records what is sent; its answers are a list."""

    def __init__(self):
        self.sent, self.skipped, self.events = [], 0, []
        self.config = types.SimpleNamespace(wants_state=1)

    def send(self, worker, task, kind, value):
        self.sent.append((worker, task, value))

    def skip_before(self, task):
        self.skipped = task

    def receive(self, timeout):
        return self.events.pop(0) if self.events else None

    def progress(self, worker):
        return 0


def queue_of(group, workers=3, prefetch=2, in_order=True):
    queue = TaskQueue(group, workers, prefetch, in_order, None)
    queue.begin([True] * workers)
    return queue


def test_tasks_go_round_active_workers_from_the_first_one():
    group = Group()
    queue = queue_of(group)
    queue.start_at(2)
    queue.active[0] = False
    for index in "abcd":
        queue.send(index, None)
    assert group.sent == [(2, 0, "a"), (1, 1, "b"), (2, 2, "c"), (1, 3, "d")]


def test_out_of_order_a_worker_with_enough_tasks_gets_no_more():
    group = Group()
    queue = queue_of(group, workers=2, in_order=False)
    for index in "abcd":
        queue.send(index, None)
    queue.note_delivery(1)
    queue.send("e", None)
    assert group.sent[-1] == (1, 4, "e")
    queue.send("f", None)
    assert queue.sent == 5  # all workers have enough


def test_tasks_of_an_ended_worker_are_passed_over():
    queue = queue_of(Group())
    for index in "abc":
        queue.send(index, None)
    queue.active[0] = False
    assert queue.next_number(queue.sent) == 1 and list(queue.tasks) == [1, 2]


def test_the_end_of_an_epoch_drops_answers_and_never_reuses_numbers():
    group = Group()
    queue = queue_of(group)
    queue.send("a", None)
    queue.send("b", None)
    answer = queue.tasks[0].frame = Reply(0)
    queue.end_epoch()
    assert answer.dropped and not queue.tasks and queue.outstanding == 0 and group.skipped == 2
    queue.send("c", None)
    assert list(queue.tasks) == [2] and queue.next_number(queue.sent) == 2


def test_tasks_before_a_border_are_discarded():
    queue = queue_of(Group())
    for index in "abcd":
        queue.send(index, None)
    queue.tasks[0].frame = Reply(0)
    queue.outstanding -= 1
    queue.discard_before(2)
    assert list(queue.tasks) == [2, 3] and queue.outstanding == 2 and queue.expected == 2


def context_of(workers):
    progress = LoaderProgress()
    progress.settings = types.SimpleNamespace(stall_timeout=0.0, on_error="raise", iterable=True)
    context = EpochContext(progress, None, True, workers, False, True)
    context.cursor = Cursor(0, workers)
    return context


def replies_of(group, workers=2):
    context, queue = context_of(workers), queue_of(group, workers)
    states = WorkerStates(group, context, queue)
    states.begin_epoch(list(range(workers)))
    return Replies(group, context, queue, states), states, queue


def test_states_that_come_before_an_answer_are_noted():
    group = Group()
    replies, states, queue = replies_of(group)
    queue.send("a", None)
    answer: Answer = Reply(0)
    group.events = [(0, Reply(0, STATE, (states.mark, False, "s"))), (0, answer)]
    assert states.missing() == [0, 1]
    assert replies.receive(queue.tasks[0], 0) is answer and states.missing() == [1]


def test_a_state_of_an_abandoned_epoch_is_ignored():
    group = Group()
    replies, states, _ = replies_of(group)
    group.events = [(0, Reply(0, STATE, (states.mark - 1, False, "s")))]
    assert replies.receive(None, 0) is None and states.missing() == [0, 1]


def test_a_timeout_does_not_end_the_iterator():
    group = Group()
    replies, _, queue = replies_of(group)
    queue.send("a", None)
    with pytest.raises(RuntimeError, match="timed out"):
        replies.receive(queue.tasks[0], 1e-9)
    assert not replies.is_fatal
