# SPDX-License-Identifier: Apache-2.0
"""`num_workers="auto"` with worker processes: the results do not depend on the number of working processes, and the
choice of this number.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections import deque

import pytest
from loader_datasets import Augmented, Numbers, flatten
from torch.utils.data import Dataset, get_worker_info

from feedline import DataLoader
from feedline.machine import limits
from feedline.torch_loader.iteration import process_count
from feedline.torch_loader.iteration.process_count import ProcessCount
from feedline.torch_loader.workers.process_workers import ProcessWorkers

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
CPUS = 5


@pytest.fixture(autouse=True)
def cpus(monkeypatch):
    """Four workers, in addition to the training loop."""
    for name in ("share_of_cpus", "usable_cpus", "usable_cores"):
        monkeypatch.setattr(limits, name, lambda: CPUS)


def told(batches):
    return [[part.tolist() for part in batch] for batch in batches]


# -- the number, with calculated loops


class Plant:
    """A loop of `loop_s` per step, and processes that take `batch_s` per batch. `useful` of them can work at the same
    time, and each further process slows the loop down by `slows`.
    """

    def __init__(self, loop_s, batch_s, limit=8, useful=None, slows=0.0):
        self.loop_s, self.batch_s, self.useful, self.slows = loop_s, batch_s, useful or limit, slows
        self.count = ProcessCount(limit)

    def step(self):
        working = self.count.count
        loop_s = self.loop_s * (1 + self.slows * working)
        made_s = self.batch_s / min(working, self.useful)
        step_s = max(loop_s, made_s)
        self.count.note(step_s, step_s - loop_s)
        return step_s

    def run(self, seconds):
        steps, passed = 0, 0.0
        while passed < seconds:
            passed += self.step()
            steps += 1
        return steps / passed


@pytest.mark.parametrize(("needed", "loop_s"), [(1, 0.05), (3, 0.05), (8, 0.02), (5, 0.3)])
def test_as_many_work_as_the_loop_needs(needed, loop_s):
    plant = Plant(loop_s, loop_s * needed * 0.98)
    plant.run(120)
    assert needed <= plant.count.count <= needed + 1
    assert plant.run(60) >= 0.97 / loop_s


def test_processes_that_slow_the_loop_down_go():
    """It never waits, and each process costs it CPU time."""
    plant = Plant(0.05, 0.1, slows=0.05)
    before = plant.run(2)
    plant.run(60)
    assert plant.count.count == 2 and plant.run(20) > 1.2 * before


def test_more_come_where_the_loop_waits_and_not_where_they_bring_nothing():
    plant = Plant(0.01, 0.4, useful=3)
    plant.count.count = 1
    plant.run(120)
    assert plant.count.count == 8, "it waits for most of its time: all of them, at once"
    plant = Plant(0.09, 0.3, useful=3)  # waits for a tenth of it, however many are added
    plant.count.count = 3
    plant.run(100)
    trials = [change for change in plant.count.changes if change.after == 4]
    assert plant.count.count in (3, 4) and 2 <= len(trials) <= 8, "less and less often"


def test_a_pause_of_the_loop_is_no_lack_of_waiting():
    plant = Plant(0.05, 0.39)
    plant.run(5)
    changes = list(plant.count.changes)
    for _ in range(20):
        plant.count.note(30.0, 0.0)  # an evaluation
    assert plant.count.changes == changes


@pytest.mark.parametrize(("mode", "numbers"), [("off", {4}), ("random", {1, 2, 3, 4})])
def test_the_mode_sets_how_numbers_are_chosen(mode, numbers):
    count = ProcessCount(4, mode)
    assert {count.note(0.1, 0.0) for _ in range(100)} == numbers


# -- the samples


def loader_of(dataset, **options):
    return DataLoader(dataset, batch_size=2, num_workers="auto", seed=5, **options)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("order", [{"shuffle": True}, {"shuffle": True, "on_error": "skip"}, {"in_order": False}])
def test_samples_and_their_order_do_not_depend_on_how_many_work(order, persistent, force):
    fixed = DataLoader(Augmented(31), batch_size=2, num_workers=2, seed=5, **order)
    force(random_threads=True)
    loader = loader_of(Augmented(31), persistent_workers=persistent, **order)
    for _ in range(2):
        expected, found = told(fixed), told(loader)
        assert loader.stats()["controller"]["processes"] in range(1, CPUS)
        assert found == expected if "in_order" not in order else sorted(found) == sorted(expected)


def test_a_state_resumes_with_another_number(force):
    force(random_threads=True)
    loader = loader_of(Augmented(31), shuffle=True, persistent_workers=True)
    whole = told(loader) + told(loader)
    fresh = loader_of(Augmented(31), shuffle=True, persistent_workers=True)
    batches = iter(fresh)
    begun = [next(batches) for _ in range(6)]
    resumed = loader_of(Augmented(31), shuffle=True)
    resumed.load_state_dict(fresh.state_dict())
    assert told(begun) + told(resumed) + told(resumed) == whole


# -- the processes


class Pid(Numbers):
    def __getitem__(self, index):
        return os.getpid()


class Steered(ProcessCount):
    """The number that a test sets."""

    wanted = 4

    def note(self, step_s, wait_s):
        self.count = min(self.wanted, self.limit)
        return self.count


@pytest.fixture
def steered(monkeypatch):
    monkeypatch.setattr(process_count, "ProcessCount", Steered)
    monkeypatch.setattr(Steered, "wanted", 4)
    return Steered


def children():
    gc.collect()
    return {child.pid for child in multiprocessing.active_children()}


@pytest.mark.parametrize("persistent", [False, True])
def test_processes_that_do_not_work_end_between_epochs_and_come_again(steered, persistent):
    before = children()
    loader = loader_of(Pid(40), persistent_workers=persistent)
    there, at_work = [], []
    for steered.wanted in (4, 1, 1, 4, 4, 4):
        batches = iter(loader)
        first = next(batches)
        there.append(len(children() - before))
        at_work.append(len(set(flatten([first, *batches]))))
    assert there == [4, 4, 2, 2, 3, 4], "one is there to be tried"
    assert at_work[0] == 4 and at_work[2] == 1
    assert loader.stats()["controller"]["limit"] == 4


def test_none_comes_where_memory_has_no_room_for_it(steered, monkeypatch):
    before = children()
    loader = loader_of(Pid(40), persistent_workers=True)
    for steered.wanted in (1, 1):
        list(loader)
    list(loader)
    assert len(children() - before) == 2
    monkeypatch.setattr(limits, "share_of_memory_left", lambda: 0)
    for steered.wanted in (4, 4, 4):
        list(loader)
    assert len(children() - before) == 2


class Asking(Numbers):
    def __getitem__(self, index):
        return get_worker_info().id


class Held(Dataset):
    def __init__(self, inner):
        self.inner = inner

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return self.inner[index]


class Counted(Numbers):
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def no_change(worker):
    pass


@pytest.mark.parametrize(
    ("dataset", "options", "why"),
    [
        (Numbers(), {}, ""),
        (Held(Numbers()), {}, ""),
        (Numbers(), {"seed": None}, "random numbers depend on the worker"),
        (Asking(), {}, "queries the worker's number"),
        (Held(Asking()), {}, "queries the worker's number"),
        (Counted(), {}, "has a state"),
        (Numbers(), {"worker_init_fn": no_change}, "worker_init_fn"),
        (Numbers(), {"worker_method": "thread"}, "threads"),
    ],
)
def test_where_the_number_could_show_it_stays(dataset, options, why):
    loader = DataLoader(dataset, **{"num_workers": "auto", "seed": 5, **options})
    next(iter(loader))
    assert (loader.stats()["controller"] is None) == bool(why)
    words = loader.explain()
    if not options.get("worker_method"):  # threads do not count as processes
        assert (
            ("4 processes throughout: " in words and why in words)
            if why
            else "depending on how long the loop waits" in words
        )


def test_a_number_that_is_given_stays():
    loader = DataLoader(Numbers(), num_workers=2, seed=5)
    next(iter(loader))
    assert loader.stats()["controller"] is None and "throughout" not in loader.explain()


def test_answers_of_a_process_that_has_gone_are_let_go_of_before_another_has_its_memory():
    class Frame:
        is_dropped = False

        def drop(self):
            self.is_dropped = True

    group, of_one, of_other = ProcessWorkers.__new__(ProcessWorkers), Frame(), Frame()
    group._ready = deque([(0, of_one), (1, of_other)])
    group._drop_answers(1)
    assert list(group._ready) == [(0, of_one)] and (of_one.is_dropped, of_other.is_dropped) == (False, True)
