# SPDX-License-Identifier: Apache-2.0
"""A dataset's state is only requested if it is needed, and a state that is requested late is as exact."""

from __future__ import annotations

import copy
import json
import logging
from pathlib import Path

import pytest
import torch
from loader_datasets import Numbers, Stream
from torch.utils.data import IterableDataset, get_worker_info

import feedline
from feedline import DataLoader

WORKERS = [(0, False), (1, False), (2, False), (2, True)]  # and whether they persist
EVERY = ["auto", 1, 3, None]


class Asked(Stream):
    """Implements torchdata's protocol; records its calls."""

    def __init__(self, mark, count=40) -> None:
        super().__init__(count)
        self.mark, self.position, self.resumed = str(mark), 0, False

    def state_dict(self):
        with open(self.mark, "a") as file:
            file.write("asked\n")
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position, self.resumed = state["position"], True

    def __iter__(self):
        items = list(super().__iter__())
        self.position, self.resumed = self.position if self.resumed else 0, False
        while self.position < len(items):
            self.position += 1
            yield items[self.position - 1]


class CountsEpochs(IterableDataset):
    """Its order depends on how often it was iterated; only its iterator has the position."""

    def __init__(self, count=24) -> None:
        self.count, self.epoch = count, -1

    def state_dict(self):
        return {"epoch": self.epoch}

    def load_state_dict(self, state):
        self.epoch = state["epoch"] - 1  # iter() advances it by one

    def __iter__(self):
        self.epoch += 1
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        order = torch.randperm(self.count, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        return Positioned(order[first::step])


class Positioned:
    def __init__(self, items) -> None:
        self.items, self.at = items, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == len(self.items):
            raise StopIteration
        self.at += 1
        return self.items[self.at - 1]

    def state_dict(self):
        return {"at": self.at, "kept": torch.full((3,), self.at)}

    def load_state_dict(self, state):
        self.at = int(state["kept"][0])
        assert self.at == state["at"]


class StreamingLike(Stream):
    """Like MosaicML's StreamingDataset: its state is for a number of samples, which only its own loader counts."""

    def state_dict(self, num_samples, from_beginning):
        raise AssertionError("nobody who does not know the samples may ask")

    def load_state_dict(self, obj):
        raise AssertionError("nobody has a state of it")


class CombinedLike(Stream):
    """Like LitData's combined datasets."""

    def state_dict(self, num_workers, batch_size, num_samples_yielded=None):
        raise AssertionError("nobody who does not know the samples may ask")

    def load_state_dict(self, state_dict):
        raise AssertionError("nobody has a state of it")


def batches(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("workers, persistent", WORKERS)
def test_no_one_is_asked_before_a_state_is_wanted(workers, persistent, tmp_path: Path):
    mark = tmp_path / "asked"
    loader = DataLoader(Asked(mark), 4, num_workers=workers, persistent_workers=persistent)
    assert batches(loader) == batches(loader)
    assert not mark.exists()
    loader.state_dict()
    list(loader)
    assert mark.exists() or workers == 0, "then the line above could not see it"
    if workers == 0:
        iterator = iter(loader)
        next(iterator)
        loader.state_dict()
        assert mark.read_text() == "asked\n" * 2, "when it is wanted, and not after every batch"


@pytest.mark.parametrize("kind", [StreamingLike, CombinedLike])
@pytest.mark.parametrize("workers, persistent", WORKERS)
@pytest.mark.parametrize("every", EVERY)
def test_a_dataset_whose_methods_want_more_is_no_stateful_one(kind, workers, persistent, every):
    def make():
        return DataLoader(kind(24), 3, num_workers=workers, persistent_workers=persistent, snapshot_every_n_steps=every)

    loader = make()
    whole = batches(loader)
    assert sorted(number for batch in whole for number in batch) == list(range(24)) and batches(loader) == whole
    iterator = iter(loader)
    next(iterator), next(iterator), next(iterator)
    resumed = make()
    resumed.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert batches(resumed) == batches(iterator) == whole[3:]


def asked(tmp_path):
    return Asked(tmp_path / "asked", 26)


def counts_epochs(tmp_path):
    return CountsEpochs(26)


@pytest.mark.parametrize("make_dataset", [asked, counts_epochs])
@pytest.mark.parametrize("workers, persistent", WORKERS)
@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.nightly), 4])
def test_saved_at_every_batch_and_resumed_it_gives_the_same(
    make_dataset, workers, persistent, every, first, tmp_path: Path
):
    """From batch `first` on; earlier states were not requested from workers, unless `every` says so."""

    def make():
        return DataLoader(
            make_dataset(tmp_path), 4, num_workers=workers, persistent_workers=persistent, snapshot_every_n_steps=every
        )

    loader = make()
    iterator = iter(loader)
    saved, rest = [], []
    for number in range(100):
        if number >= first:
            saved.append((number, copy.deepcopy(loader.state_dict())))
        batch = next(iterator, None)
        if batch is None:
            break
        rest.append(batch.tolist())
    assert len(saved) == len(rest) - first + 1 and len(rest) >= 7
    for number, state in saved[:: 1 + workers]:
        if number == len(rest):
            continue  # all are delivered, but the end was not reached: nothing follows
        resumed = make()
        resumed.load_state_dict(state)
        assert batches(resumed) == rest[number:], number


@pytest.mark.parametrize("every", ["auto", 1])
def test_a_later_epoch_of_workers_that_live_on_is_resumed_as_itself(every):
    """Its order depends on the dataset's own count of epochs, which a new dataset does not have."""

    def make():
        return DataLoader(CountsEpochs(), 4, num_workers=2, persistent_workers=True, snapshot_every_n_steps=every)

    loader = make()
    loader.state_dict()
    orders = [batches(loader), batches(loader)]
    iterator = iter(loader)
    head = [next(iterator).tolist() for _ in range(3)]
    state = copy.deepcopy(loader.state_dict())
    rest = batches(iterator)
    assert head + rest not in orders
    resumed = make()
    resumed.load_state_dict(state)
    assert batches(resumed) == rest


def test_a_state_that_knows_nothing_of_earlier_epochs_reports_it(caplog):
    loader = DataLoader(CountsEpochs(), 4, num_workers=2, persistent_workers=True)
    list(loader)
    iterator = iter(loader)
    next(iterator)
    with caplog.at_level(logging.WARNING, "feedline"):
        loader.state_dict()
        loader.state_dict()
    assert caplog.text.count("lacks the state from earlier epochs") == 1 and "snapshot_every_n_steps=1" in caplog.text
    del iterator


class StatefulNumbers(Numbers):
    """Map-style, and counts its reads."""

    def __init__(self) -> None:
        super().__init__(40)
        self.read = 0

    def state_dict(self):
        return {"read": self.read}

    def load_state_dict(self, state):
        self.read = state["read"]

    def __getitem__(self, index):
        self.read += 1
        return torch.tensor([index, self.read])


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_map_style_dataset_with_a_state(workers, caplog):
    loader = DataLoader(StatefulNumbers(), 4, num_workers=workers)
    loader.state_dict()  # as Accelerate does, before anything is read
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    state = copy.deepcopy(loader.state_dict())
    resumed = DataLoader(StatefulNumbers(), 4, num_workers=workers)
    resumed.load_state_dict(state)
    with caplog.at_level(logging.WARNING, "feedline"):
        assert batches(resumed) == batches(iterator)
    assert not caplog.text


@pytest.mark.parametrize("every", ["auto", None, 0, 3])
def test_a_map_style_state_that_is_first_wanted_within_an_epoch_is_exact(every):
    def make():
        return DataLoader(StatefulNumbers(), 3, num_workers=2, snapshot_every_n_steps=every)

    loader = make()
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    state = copy.deepcopy(loader.state_dict())
    resumed = make()
    resumed.load_state_dict(state)
    assert batches(resumed) == batches(iterator)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stop", [0, 1, 5])
def test_loading_into_workers_that_live_on(workers, stop):
    """The position counts from the start of a dataset that has not been read yet."""
    loader = DataLoader(Asked("/dev/null"), 4, num_workers=workers, persistent_workers=True)
    list(loader)
    iterator = iter(loader)
    for _ in range(stop):
        next(iterator)
    state = copy.deepcopy(loader.state_dict())
    rest = batches(iterator)
    loader.load_state_dict(state)
    assert batches(loader) == rest
    assert batches(loader) == batches(DataLoader(Asked("/dev/null"), 4, num_workers=workers))


class BrokenState(Stream):
    def state_dict(self):
        raise LookupError("no state today")

    def load_state_dict(self, state):
        """Neither has one."""


@pytest.mark.parametrize("method", ["process", "thread"])
def test_a_state_that_fails_is_that_error(method):
    loader = DataLoader(BrokenState(), 4, num_workers=2, worker_method=method)
    assert len(list(loader)) == 10, "nobody asks"
    loader.state_dict()
    with pytest.raises(LookupError, match="no state today") as caught:
        list(loader)
    assert "in state_dict" in str(caught.value.__cause__)


@pytest.mark.parametrize("wrong", ["never", -1, True, 1.5])
def test_how_often_is_checked(wrong):
    with pytest.raises(feedline.ConfigError, match="snapshot_every_n_steps must be an integer of at least 0, not"):
        DataLoader(Numbers(), snapshot_every_n_steps=wrong)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("method", ["process", "thread"])
def test_the_state_of_a_dataset_is_refused_by_one_that_has_none(workers, method):
    options = {"num_workers": workers, "worker_method": method, "snapshot_every_n_steps": 1}
    loader = DataLoader(Asked("/dev/null"), 4, **options)
    iterator = iter(loader)
    next(iterator)
    other = DataLoader(Stream(40), 4, **options)
    other.load_state_dict(copy.deepcopy(loader.state_dict()))
    with pytest.raises(feedline.ConfigError, match=r"dataset, Stream, has no load_state_dict\(\)"):
        next(iter(other))
    del iterator
