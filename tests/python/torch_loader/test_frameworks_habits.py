# SPDX-License-Identifier: Apache-2.0
"""Habits of frameworks: recreating loaders from their attributes, using threads as processes, checking for remaining
threads, and setting the epochs of samplers.
"""

from __future__ import annotations

import copy
import inspect
import json
import multiprocessing
import pickle
import threading
from unittest.mock import MagicMock

import pytest
import torch
from loader_datasets import Failing, Numbers, Stream, flatten
from running_processes import end_publishing
from torch.utils.data import DistributedSampler, TensorDataset, get_worker_info
from torch.utils.data import dataloader as torch_dataloader

from feedline import ConfigError, DataLoader
from feedline.profiler.probe.loop_hooks import _task_of
from feedline.serving import publishing
from feedline.torch_loader.options.settings import Settings

# -- attributes


@pytest.mark.parametrize("workers", [0, 2])
def test_public_attributes_are_arguments(workers):
    loader = DataLoader(Numbers(12), 4, num_workers=workers, persistent_workers=workers > 0)
    list(loader)
    loader.load_state_dict(loader.state_dict())
    public = {name for name in vars(loader) if not name.startswith("_")}
    assert public <= set(inspect.signature(DataLoader.__init__).parameters)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_is_rebuilt_from_its_public_attributes(workers):
    given = {
        "seed": 3,
        "on_error": "skip",
        "error_budget": 5,
        "snapshot_every_n_steps": 2,
        "stall_timeout": 7.0,
        "lower": "never",
    }
    loader = DataLoader(Failing(22, {1}, ValueError("bad")), 4, num_workers=workers, **given)
    list(loader)
    assert len(loader.errors) == 1
    arguments = {name: value for name, value in vars(loader).items() if not name.startswith("_")}
    for name in ("batch_size", "sampler", "drop_last"):  # torch's batch_sampler replaces these
        del arguments[name]
    again = type(loader)(**arguments, multiprocessing_context=loader.multiprocessing_context)
    assert {name: getattr(again, name) for name in given} == given
    assert again.errors == [] and again.errors is not loader.errors
    assert flatten(again) == flatten(loader)


def test_a_loader_that_is_rebuilt_from_an_automatic_one_is_automatic():
    loader = DataLoader(Numbers(12), 4, num_workers="auto")
    workers = vars(loader)["num_workers"]
    assert type(Settings.of(loader).num_workers) is int and workers == Settings.of(loader).num_workers > 0
    assert Settings.of(DataLoader(Numbers(12), 4, num_workers=workers)).adapts
    assert Settings.of(pickle.loads(pickle.dumps(loader))).adapts
    assert DataLoader([1, 2, 3], num_workers=workers).num_workers == 0, "these are in memory"
    loader.num_workers = 2  # as a framework, or an experiment, may request it
    assert not Settings.of(loader).adapts
    assert json.dumps(loader.state_dict(), default=lambda value: pytest.fail(repr(value)))


def test_a_copy_goes_its_own_way():
    loader = DataLoader(Failing(12, {1}, ValueError("bad")), 4, on_error="skip", seed=0)
    list(loader)
    other = copy.copy(loader)
    list(other)
    assert (loader.state_dict()["epoch"], other.state_dict()["epoch"]) == (1, 2)


def test_errors_are_those_of_the_loader():
    loader = DataLoader(Failing(22, {1}, ValueError("bad")), 4, on_error="skip")
    with pytest.raises(AttributeError):
        loader.errors = []
    list(loader)
    assert len(loader.errors) == len(pickle.loads(pickle.dumps(loader)).errors) == 1


# -- contexts whose processes are threads


class ThreadProcess(threading.Thread):
    """Like MONAI's _ProcessThread: a thread with the interface of a process."""

    @property
    def pid(self):
        return self.ident

    exitcode = None


class ThreadContext(multiprocessing.context.SpawnContext):
    _name = "spawn"
    Process = ThreadProcess


class ThreadLoader(DataLoader):
    """Like MONAI's ThreadDataLoader with use_thread_workers=True."""

    def __init__(self, dataset, **more) -> None:
        super().__init__(dataset, multiprocessing_context=ThreadContext(), persistent_workers=True, **more)


class Where(Numbers):
    """Has a lambda, so it cannot be pickled; samples name the thread that reads."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = lambda index: (index, threading.current_thread() is threading.main_thread())

    def __getitem__(self, index):
        assert get_worker_info().num_workers == 2
        return self.transform(index)


def test_a_context_whose_processes_are_threads():
    before = torch.get_num_threads(), torch.utils.data._utils.collate.default_collate_fn_map[torch.Tensor]
    loader = ThreadLoader(Where(), batch_size=4, num_workers=2)
    for _ in range(2):
        read = list(loader)
        assert flatten(index for index, _ in read) == list(range(40))
        assert not any(bool(main) for _, mains in read for main in mains)
    assert multiprocessing.active_children() == [] and get_worker_info() is None
    now = torch.get_num_threads(), torch.utils.data._utils.collate.default_collate_fn_map[torch.Tensor]
    assert now == before, "what a worker process sets for itself, this one keeps"
    assert "in 2 worker threads" in loader.explain() and "memfd" not in loader.explain()


def test_streams_with_such_a_context():
    loader = ThreadLoader(Stream(40), batch_size=4, num_workers=2)
    assert sorted(flatten(loader)) == sorted(flatten(loader)) == list(range(40))


# -- classes that create their iterators themselves


class CountingSingle(torch_dataloader._SingleProcessDataLoaderIter):
    """Like LitData's: torch's iterator, with code at its end."""

    ended = 0

    def _next_data(self):
        try:
            return super()._next_data()
        except StopIteration:
            CountingSingle.ended += 1
            raise


class CountingWorkers(torch_dataloader._MultiProcessingDataLoaderIter):
    ended = 0

    def _next_data(self):
        try:
            return super()._next_data()
        except StopIteration:
            CountingWorkers.ended += 1
            raise


class OwnIterators(DataLoader):
    """Like LitData's StreamingDataLoader and CacheDataLoader."""

    def _get_iterator(self):
        return (CountingWorkers if self.num_workers else CountingSingle)(self)


OWN = {
    "in this process": ({}, CountingSingle),
    "workers": ({"num_workers": 2}, CountingWorkers),
    "workers that live on": ({"num_workers": 2, "persistent_workers": True}, CountingWorkers),
}


@pytest.mark.parametrize("kind", OWN)
def test_a_class_may_make_iterators_of_torchs_classes(kind, published):
    more, iterators = OWN[kind]
    loader = OwnIterators(Numbers(), 4, **more)
    before = iterators.ended
    for epoch in range(3):
        iterator = iter(loader)
        assert type(iterator) is iterators and flatten(iterator) == list(range(40))
        assert loader.stats()["epoch"] == epoch
    assert iterators.ended == before + 3
    assert left() == [], "what nobody sees is not shown as running"


def test_such_a_class_has_the_order_of_its_seed_epoch_by_epoch():
    one, two = (OwnIterators(Numbers(), 4, shuffle=True, seed=3, num_workers=workers) for workers in (0, 2))
    orders = [flatten(one) for _ in range(3)]
    assert orders == [flatten(two) for _ in range(3)] and orders[0] != orders[1] != orders[2]


def test_such_a_class_has_no_position(caplog):
    loader = OwnIterators(Numbers(), 4)
    assert (
        "iterators  OwnIterators creates its own" in loader.explain() and "iterators" not in DataLoader([1]).explain()
    )
    loader.load_state_dict(loader.state_dict())  # for the start, the position at which it begins
    next(iter(loader))
    assert loader.state_dict() == {} and "_get_iterator" in caplog.text
    other = DataLoader(Numbers(), 4)
    next(iter(other))
    loader.load_state_dict(other.state_dict())
    with pytest.raises(ConfigError, match="the state was saved after 1 batches"):
        iter(loader)
    assert flatten(loader) == list(range(40)), "and from there on as before"


class Wrapped(DataLoader):
    """Counts the batches of an iterator of Feedline."""

    def _get_iterator(self):
        return (batch + 1 for batch in super()._get_iterator())


@pytest.mark.parametrize("workers", [0, 2])
def test_a_class_may_wrap_our_iterators_and_resume(workers):
    loader, again = (Wrapped(Numbers(), 4, num_workers=workers) for _ in range(2))
    iterator = iter(loader)
    begun = flatten([next(iterator), next(iterator)])
    again.load_state_dict(loader.state_dict())
    assert begun == list(range(1, 9)) and flatten(again) == flatten(iterator) == list(range(9, 41))


# -- remaining threads


def left():
    return [thread.name for thread in threading.enumerate() if thread.name == "feedline-publish"]


@pytest.fixture
def published(monkeypatch, tmp_path):
    monkeypatch.setenv("FEEDLINE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.delenv("FEEDLINE_PUBLISH", raising=False)
    end_publishing()
    yield
    end_publishing()


LOADERS = {
    "in this process": lambda: DataLoader(Numbers(12), 4),
    "workers": lambda: DataLoader(Numbers(12), 4, num_workers=2),
    "workers that live on": lambda: DataLoader(Numbers(12), 4, num_workers=2, persistent_workers=True),
    "threads": lambda: DataLoader(Numbers(12), 4, num_workers=2, worker_method="thread"),
    "lowered": lambda: DataLoader(TensorDataset(torch.arange(12)), 4),
    "a stream": lambda: DataLoader(Stream(12), 4, num_workers=1),
}


@pytest.mark.parametrize("kind", LOADERS)
def test_no_thread_is_left_when_the_last_epoch_ends(kind, published):
    loader, other = LOADERS[kind](), LOADERS[kind]()
    for _ in range(2):
        iterator, second = iter(loader), iter(other)
        next(iterator), next(second)
        assert left() == ["feedline-publish"]
        list(iterator)
        assert left() == ["feedline-publish"], "the other one runs"
        list(second)
        assert left() == [], "both loaders are still there"
    assert not list(publishing._loaders)


def test_who_ends_threads_that_are_left_ends_ours_and_the_next_epoch_is_seen_again(published):
    """As in Lightning's tests: `stop()` of a daemon, which must have ended afterwards."""
    loader = LOADERS["in this process"]()
    kept = iter(loader)
    next(kept)
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "feedline-publish")
    assert thread.daemon
    thread.stop()
    assert not thread.is_alive() and left() == []
    next(kept)
    next(iter(loader))
    assert left() == ["feedline-publish"]


@pytest.mark.parametrize("kind", ["in this process", "workers", "threads", "lowered", "a stream"])
def test_no_thread_is_left_by_a_loop_that_was_left(kind, published):
    loader = LOADERS[kind]()
    for _ in loader:
        assert left()
        break
    assert left() == []


@pytest.mark.parametrize("workers", [0, 2])
def test_no_thread_is_left_by_an_epoch_that_failed(workers, published):
    loader = DataLoader(Failing(12, {5}, ValueError("bad")), 4, num_workers=workers)
    with pytest.raises(ValueError, match="bad") as caught:
        list(loader)
    assert left() == [] and caught.value.__traceback__ is not None, "which holds the iterator"


def test_two_iterators_of_one_loader_are_one_that_runs(published):
    loader = DataLoader(Numbers(12), 4)
    first, second = iter(loader), iter(loader)
    list(first)
    assert left()
    del second
    assert left() == []


def test_workers_that_live_on_do_not_gather_what_watches_them(published):
    loader = DataLoader(Numbers(8), 4, num_workers=1, persistent_workers=True)
    list(loader)
    import weakref

    count = len(weakref.finalize._registry)
    for _ in range(5):
        list(loader)
    assert len(weakref.finalize._registry) <= count


# -- samplers' epochs


class Hidden(DistributedSampler):
    """Its epoch shows how it was created, whatever is set."""

    def __init__(self, *arguments, **named) -> None:
        super().__init__(*arguments, **named)
        self.calls, self.hidden = [], 0

    def set_epoch(self, epoch):
        self.calls.append(epoch)
        self.hidden = epoch

    def __iter__(self):
        return iter([(index + self.hidden) % 40 for index in range(20)])

    def __len__(self):
        return 20


@pytest.mark.parametrize("workers, persistent", [(0, False), (2, False), (2, True)])
def test_each_epoch_is_set_once_where_a_framework_sets_it(workers, persistent):
    sampler = Hidden(range(40), 2, 0)
    loader = DataLoader(Numbers(), 4, sampler=sampler, num_workers=workers, persistent_workers=persistent)
    for epoch in range(4):
        loader.sampler.set_epoch(epoch)
        assert flatten(loader) == [(index + epoch) % 40 for index in range(20)]
    assert sampler.calls == [0, 1, 2, 3]


def test_a_mocked_set_epoch_hears_the_framework_alone():
    """As in ignite's tests: the call has no other visible effect."""
    sampler = DistributedSampler(range(40), 2, 0)
    sampler.set_epoch = MagicMock(name="set_epoch")
    loader = DataLoader(Numbers(), 4, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        list(loader)
    assert [call.args for call in sampler.set_epoch.call_args_list] == [(0,), (1,), (2,)]


def test_the_same_epoch_set_again_is_the_same_order():
    """As in frameworks that evaluate twice in one epoch."""
    sampler = DistributedSampler(range(40), 2, 0, seed=3)
    loader = DataLoader(Numbers(), 4, sampler=sampler)
    orders = []
    for _ in range(3):
        sampler.set_epoch(7)
        orders.append(flatten(loader))
    assert orders[0] == orders[1] == orders[2] and sampler.epoch == 7


def test_a_forgotten_epoch_still_continues_by_one_next_to_other_loaders():
    sampler = DistributedSampler(range(40), 2, 0, seed=3)
    one, two = (DataLoader(Numbers(), 4, sampler=sampler) for _ in range(2))
    epochs = []
    for loader in (one, one, two, one, one):
        list(loader)
        epochs.append(sampler.epoch)
    assert epochs == [0, 1, 1, 2, 3]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_sampler_that_was_iterated_can_be_copied(how):
    sampler = DistributedSampler(range(40), 2, 0, seed=3)
    list(DataLoader(Numbers(), 4, sampler=sampler))
    copied = how(sampler)
    copied.set_epoch(5)
    loader = DataLoader(Numbers(), 4, sampler=copied)
    list(loader), list(loader)
    assert (copied.epoch, sampler.epoch) == (6, 0)
    assert list(inspect.signature(DistributedSampler.set_epoch).parameters) == ["self", "epoch"]


class Slots:
    """Has slots, so that no attribute can be added."""

    __slots__ = ("calls", "epoch")

    def __init__(self) -> None:
        self.epoch, self.calls = 0, 0

    def set_epoch(self, epoch):
        self.calls += 1

    def __iter__(self):
        return iter(range(40))

    def __len__(self):
        return 40


def test_a_sampler_that_cannot_be_watched_is_never_set():
    sampler = Slots()
    loader = DataLoader(Numbers(), 4, sampler=sampler)
    list(loader), list(loader), list(loader)
    assert sampler.calls == 0


@pytest.mark.parametrize("kind", [DataLoader, torch_dataloader.DataLoader])
def test_profilers_read_the_numbers_of_tasks(kind):
    iterator = iter(kind(Numbers(12), batch_size=2, num_workers=1, prefetch_factor=2))
    next(iterator), next(iterator)
    assert (_task_of(iterator), iterator._rcvd_idx, iterator._send_idx, iterator._tasks_outstanding) == (1, 2, 4, 2)
