# SPDX-License-Identifier: Apache-2.0
"""Some of a worker's short tasks are recorded, with everything that belongs to them; late tasks always are."""

import threading
from itertools import pairwise
from multiprocessing.reduction import ForkingPickler

import pytest
from watched import recorded

from feedline.profiler.collect import FileCollector
from feedline.profiler.probe import budget, events, recorder, worker_hooks
from feedline.profiler.probe.events import Total
from feedline.profiler.probe.recorder import Recorder
from feedline.profiler.summary.tasks import done_of

US, MS, S = 1_000, 1_000_000, 1_000_000_000


class Queue:
    """Returns `tasks` and stores what it receives."""

    def __init__(self, tasks=()):
        self.tasks, self.received = list(tasks), []

    def get(self, timeout=None):
        return self.tasks.pop(0)

    def put(self, item):
        self.received.append(item)


class Worker:
    """The hooks of a worker, with clocks that only advance during tasks, and hooks that cost 50 us each."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.now = folder, 7 * S
        self.recorder = Recorder(str(folder))
        self.recorder.record(events.READY, 0)  # nothing is calibrated from here on
        self.recorder._started_ns, self.recorder.call_ns = self.now, 25 * US
        self.recorder.event_ns = 10 * US
        self.recorder.in_worker, self.recorder.sending = True, {}
        for module in (budget, recorder, worker_hooks):
            monkeypatch.setattr(module, "clock", lambda: self.now)
            monkeypatch.setattr(module, "cpu_clock", lambda: self.now)
        self.seen = []  # numbers of tasks whose fetch is recorded

    def work(self, times_ns):
        tasks = worker_hooks._Tasks(self.recorder)
        given = worker_hooks._TaskQueue(Queue([*((n, None) for n in range(len(times_ns))), None]), tasks, lambda: None)
        results = worker_hooks._ResultQueue(Queue(), tasks)
        while (task := given.get(timeout=5)) is not None:
            if not self.recorder.local.unseen:
                self.seen.append(task[0])
            self.now += times_ns[task[0]]
            results.put((task[0], "batch"))

    def record(self):
        (found,) = FileCollector(self.folder).processes()
        return found


@pytest.fixture
def worker(tmp_path, monkeypatch):
    return Worker(tmp_path, monkeypatch)


def numbers(record, kind):
    return [event.a for event in record.events if event.kind == kind]


def test_long_tasks_are_all_recorded(worker):
    worker.work([60 * MS] * 200)
    record = worker.record()
    assert numbers(record, events.WORK) == list(range(200))
    assert not {events.UNSEEN_WORK, events.LATE_WORK} & set(record.totals)


def test_short_tasks_are_counted_and_some_of_them_recorded_at_the_price_that_is_allowed(worker):
    worker.work([MS] * 5000)
    record = worker.record()
    assert done_of(record.totals).times == 5000
    allowed = budget._FREE_NS + budget.COST_SHARE * 5 * S
    assert 0.5 * allowed < worker.recorder.spent_ns < 1.2 * allowed
    assert worker.seen == numbers(record, events.WORK)  # everything that belongs to a task is recorded with it


def test_tasks_that_a_worker_waits_for_are_paced_by_the_time_between_them(worker):
    """It works for one millisecond in ten; the allowed overhead grows while it waits."""
    tasks = worker_hooks._Tasks(worker.recorder)
    for number in range(1000):
        worker.now += 9 * MS
        tasks.begun(number)
        worker.now += MS
        tasks.ended(number, object())
    allowed = budget._FREE_NS + budget.COST_SHARE * 10 * S
    assert 0.5 * allowed < worker.recorder.spent_ns < 1.2 * allowed
    seen = numbers(worker.record(), events.WORK)
    assert max(later - number for number, later in pairwise(seen)) <= 16  # one in 33, if only work counted


def test_what_hooks_take_inside_a_task_is_no_part_of_its_time(worker):
    """Unrecorded tasks are not, and their times are estimated from recorded ones."""
    tasks = worker_hooks._Tasks(worker.recorder)
    tasks.begun(0)
    worker.now += 3 * MS
    worker.recorder.paid(2 * MS, 0, MS // 2)
    tasks.ended(0, object())
    work = worker.record().totals[events.WORK]
    assert work.cpu_ns == pytest.approx(3 * MS - budget._MOST_OF_HOOK_NS - MS // 2, abs=60 * US)


def test_a_task_that_takes_long_is_recorded_whosever_turn_it_is_and_represents_itself(worker):
    times = [MS] * 3000
    late = range(500, 3000, 97)
    for number in late:
        times[number] = 20 * MS
    worker.work(times)
    record = worker.record()
    assert sorted(numbers(record, events.LATE_WORK) + [n for n in numbers(record, events.WORK) if n in late]) == [*late]
    assert len(numbers(record, events.LATE_WORK)) > 0.9 * len(late)  # unless nothing had passed before it
    assert done_of(record.totals).times == 3000


def test_what_passed_last_is_reported_when_an_epoch_ends(worker):
    worker.work([MS] * 400)
    record = worker.record()
    last = record.events[-1]
    assert last.kind == events.UNSEEN_WORK and last.a == 399 - numbers(record, events.WORK)[-1]


@pytest.fixture
def pickler():
    before = ForkingPickler.dumps, ForkingPickler.loads
    yield ForkingPickler
    ForkingPickler.dumps, ForkingPickler.loads = before


def test_packing_is_seen_with_its_task_and_where_a_seen_one_waits_for_it(worker, pickler):
    worker_hooks.patch_pickling(worker.recorder)
    sending = worker.recorder.sending
    batches = [(number, "batch" * (number + 1)) for number in range(6)]

    def send():
        sending[id(batches[0])] = events.PICKLE
        pickler.dumps(batches[0])
        pickler.dumps(batches[1])  # no recorded task waits for it
        sending[id(batches[3])] = events.PICKLE
        pickler.dumps(batches[2])
        pickler.dumps(batches[3])
        sending[id(batches[4])] = events.PICKLE_BESIDE  # of a late task
        pickler.dumps(batches[4])
        worker.now += MS
        pickler.dumps(batches[5])  # long after it

    sender = threading.Thread(target=send)
    sender.start()
    sender.join()
    sending[1] = events.PICKLE
    pickler.dumps(batches[0])  # in another thread, of a pool
    record, sizes = worker.record(), [len(pickler.dumps(batch)) for batch in batches]
    assert numbers(record, events.PICKLE) == [sizes[0], sizes[3]]
    assert numbers(record, events.PICKLE_BESIDE) == [sizes[2], sizes[4]]


SHORT = """
import torch
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(range(1500), batch_size=1, num_workers=1, persistent_workers={persistent})
    assert sum(1 for _epoch in range(2) for _batch in loader) == 3000
    del loader  # else its workers are killed at the exit, and what passed last is not told
"""


@pytest.mark.parametrize("persistent", [True, False])
def test_a_real_workers_short_tasks_are_counted_each_and_recorded_in_part(tmp_path, persistent):
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    processes = recorded(tmp_path, SHORT.format(persistent=persistent)).processes
    workers = [process for process in processes if events.WORK in process.totals]
    assert len(workers) == (1 if persistent else 2)
    for worker in workers:
        assert done_of(worker.totals).times == (3000 if persistent else 1500)
        seen = worker.totals[events.WORK].times
        assert 0 < seen < done_of(worker.totals).times
        assert worker.totals[events.PICKLE].times == seen
        assert seen <= worker.totals[events.FETCH].times <= seen + worker.totals.get(events.LATE_WORK, Total()).times
    (loop,) = (process for process in processes if events.WAIT in process.totals)
    waits = {event.b for event in loop.events if event.kind == events.WAIT}
    tasks = {number for worker in workers for number in numbers(worker, events.WORK)}
    # tasks that both record are most of those of the one that records fewer
    assert len(waits & tasks) > min(len(waits), len(tasks)) / 4
