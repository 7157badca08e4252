# SPDX-License-Identifier: Apache-2.0
"""Resuming at any point has the same result as never having stopped; pains 18 and 20."""

from __future__ import annotations

import json
import logging
import pickle
import random

import numpy as np
import pytest
import torch
from loader_datasets import Augmented, Failing, Numbers, ResumableStream, Stream, flatten
from torch.utils.data import DistributedSampler, RandomSampler, WeightedRandomSampler

import feedline
from feedline import DataLoader


class NumPyOrder:
    """A user's sampler that draws from NumPy's global generator."""

    def __iter__(self):
        return iter(np.random.permutation(40).tolist())

    def __len__(self):
        return 40


class PythonBatches:
    """A batch sampler that draws from Python's generator, batch by batch."""

    def __iter__(self):
        for _ in range(8):
            yield [random.randrange(40) for _ in range(random.randrange(1, 6))]

    def __len__(self):
        return 8


ORDERS = {
    "sequential": dict,
    "shuffle": lambda: {"shuffle": True},
    "generator": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(3)},
    "seed": lambda: {"shuffle": True, "seed": 3},
    "own generator": lambda: {"sampler": RandomSampler(range(40), generator=torch.Generator().manual_seed(4))},
    "replacement": lambda: {"sampler": RandomSampler(range(40), replacement=True, num_samples=50)},
    "weighted": lambda: {"sampler": WeightedRandomSampler(torch.ones(40), 40)},
    "distributed": lambda: {"sampler": DistributedSampler(range(40), 2, 1, seed=5)},
    "NumPy": lambda: {"sampler": NumPyOrder()},
    "batches": lambda: {"batch_sampler": PythonBatches()},
    "no batches": lambda: {"batch_size": None, "shuffle": True},
    "drop_last": lambda: {"batch_size": 7, "drop_last": True, "shuffle": True},
}


def make(order, workers, **more):
    arguments = {**ORDERS[order](), **more}
    if "batch_sampler" not in arguments:
        arguments.setdefault("batch_size", 3)
    return DataLoader(Numbers(), num_workers=workers, **arguments)


def numbers(batch):
    return batch.tolist() if isinstance(batch, torch.Tensor) else batch


def seeded(number):
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("workers", [(0, 0), (0, 2), (2, 0), (1, 2)])
def test_resuming_gives_the_rest_of_the_epoch(order, workers):
    for stop in (0, 1, 5) if workers == (0, 0) else (0, 5):
        seeded(8)
        loader = make(order, workers[0], persistent_workers=workers == (2, 0))
        list(loader)
        iterator = iter(loader)
        for _ in range(stop):
            next(iterator)
        saved = json.loads(json.dumps(loader.state_dict()))
        rest = [numbers(batch) for batch in iterator]
        seeded(9)
        resumed = make(order, workers[1])
        resumed.load_state_dict(pickle.loads(pickle.dumps(saved)))
        if stop == 0 and workers[0] == 0 and order in ("shuffle", "replacement", "weighted", "NumPy", "batches",
                                                       "no batches", "drop_last"):  # fmt: skip
            continue  # nothing was drawn from the process's generators when the state was saved
        assert [numbers(batch) for batch in resumed] == rest, stop


@pytest.mark.parametrize("order", ["generator", "seed", "own generator", "distributed"])
@pytest.mark.parametrize("workers", [0, 2])
def test_the_state_after_an_epoch_starts_the_next(order, workers):
    loader = make(order, workers)
    list(loader)
    saved = json.loads(json.dumps(loader.state_dict()))
    following = [numbers(batch) for batch in loader]
    resumed = make(order, workers)
    resumed.load_state_dict(saved)
    assert [numbers(batch) for batch in resumed] == following


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_after_the_resumed_one_are_the_same(workers):
    for prefetch in {False, workers > 0}:
        loader = make("generator", workers, persistent_workers=workers > 0, prefetch_epochs=prefetch)
        iterator = iter(loader)
        for _ in range(4):
            next(iterator)
        saved = loader.state_dict()
        rest = [[numbers(b) for b in iterator], [numbers(b) for b in loader], [numbers(b) for b in loader]]
        end = loader.state_dict()
        last = [numbers(b) for b in loader]
        resumed = make("generator", workers, persistent_workers=workers > 0)
        resumed.load_state_dict(saved)
        assert [[numbers(b) for b in resumed] for _ in range(3)] == rest
        resumed = make("generator", 0)
        resumed.load_state_dict(end)
        assert [numbers(b) for b in resumed] == last


def test_resuming_reads_no_sample_that_was_delivered():
    loader = DataLoader(Numbers(), batch_size=4)
    iterator = iter(loader)
    for _ in range(6):
        next(iterator)
    saved = loader.state_dict()
    read = []

    class Watched(Numbers):
        def __getitem__(self, index):
            read.append(index)
            return index

    resumed = DataLoader(Watched(), batch_size=4)
    resumed.load_state_dict(saved)
    list(resumed)
    assert read == list(range(24, 40))


def test_loading_in_the_middle_of_an_epoch_counts_at_the_next_iter():
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    next(iterator)
    saved = loader.state_dict()
    for _ in range(3):
        next(iterator)
    loader.load_state_dict(saved)
    assert loader.state_dict() == saved
    assert flatten(loader) == list(range(4, 40))
    assert flatten(loader) == list(range(40))


def test_an_empty_state_changes_nothing():
    loader = DataLoader(Numbers(), batch_size=4)
    loader.load_state_dict({})
    assert flatten(loader) == list(range(40))


@pytest.mark.parametrize("workers", [0, 2])
def test_random_numbers_continue_with_a_seed(workers):
    loader = DataLoader(Augmented(), batch_size=4, num_workers=workers, seed=1, shuffle=True)
    list(loader)
    iterator = iter(loader)
    next(iterator), next(iterator)
    saved = loader.state_dict()
    rest = [[f.tolist() for f in batch] for batch in iterator]
    resumed = DataLoader(Augmented(), batch_size=4, num_workers=1, seed=1, shuffle=True)
    resumed.load_state_dict(saved)
    assert [[f.tolist() for f in batch] for batch in resumed] == rest


def test_bad_samples_and_resuming():
    data = Failing(22, {1, 7, 8}, ValueError("broken"))
    loader = DataLoader(data, batch_size=4, on_error="skip", num_workers=2)
    iterator = iter(loader)
    next(iterator), next(iterator)
    saved = json.loads(json.dumps(loader.state_dict()))
    rest = [b.tolist() for b in iterator]
    resumed = DataLoader(data, batch_size=4, on_error="skip")
    resumed.load_state_dict(saved)
    assert [b.tolist() for b in resumed] == rest == [[19, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18]]


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("stop", [1, 4, 9])
def test_a_stream_is_passed_over_and_reports_it(workers, stop, caplog):
    loader = DataLoader(Stream(), batch_size=3, num_workers=workers)
    iterator = iter(loader)
    for _ in range(stop):
        next(iterator)
    saved = json.loads(json.dumps(loader.state_dict()))
    rest = [b.tolist() for b in iterator]
    resumed = DataLoader(Stream(), batch_size=3, num_workers=workers)
    resumed.load_state_dict(saved)
    with caplog.at_level(logging.WARNING, "feedline"):
        assert [b.tolist() for b in resumed] == rest
    assert "by reading and dropping" in caplog.text


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("every", [1, 3])
def test_a_stream_with_its_own_state_is_asked(workers, every):
    def make_stream():
        return DataLoader(ResumableStream(), batch_size=3, num_workers=workers, snapshot_every_n_steps=every)

    loader = make_stream()
    iterator = iter(loader)
    for _ in range(7):
        next(iterator)
    saved = json.loads(json.dumps(loader.state_dict()))
    rest = [b[:, 0].tolist() for b in iterator]
    resumed = make_stream()
    resumed.load_state_dict(saved)
    batches = list(resumed)
    assert [b[:, 0].tolist() for b in batches] == rest
    assert int(batches[0][0, 1]) <= 3 * every  # items produced since then, none of the 21 before


def test_a_stream_needs_its_number_of_workers():
    loader = DataLoader(Stream(), batch_size=3, num_workers=2)
    next(iter(loader))
    with pytest.raises(feedline.ConfigError, match=r"2 worker\(s\) and this loader 3"):
        DataLoader(Stream(), batch_size=3, num_workers=3).load_state_dict(loader.state_dict())


def test_an_order_that_cannot_be_replayed_is_an_error():
    class Unrepeatable:
        count = 0

        def __iter__(self):
            Unrepeatable.count += 1
            return iter([(i * 7 + Unrepeatable.count) % 40 for i in range(40)])

        def __len__(self):
            return 40

    loader = DataLoader(Numbers(), sampler=Unrepeatable(), batch_size=4)
    iterator = iter(loader)
    next(iterator), next(iterator)
    resumed = DataLoader(Numbers(), sampler=Unrepeatable(), batch_size=4)
    resumed.load_state_dict(loader.state_dict())
    with pytest.raises(feedline.ConfigError, match="order differs from the order when the state was saved"):
        list(resumed)


@pytest.mark.parametrize("wrong", [{"x": 1}, {"version": 99, "delivered": 0}, 5])
def test_what_is_not_a_state_is_refused(wrong):
    with pytest.raises(feedline.ConfigError, match="not a state"):
        DataLoader(Numbers()).load_state_dict(wrong)


class IterableDataset(Stream):
    """Like `datasets`' own: every epoch begins at a state that was loaded once, until an empty one is loaded."""

    def __init__(self, count):
        super().__init__(count, sharded=False)
        self.at, self.loaded = 0, None

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.loaded = state

    def __iter__(self):
        for item in range((self.loaded or {"at": 0})["at"], self.count):
            self.at = item + 1
            yield item


IterableDataset.__module__ = "datasets.iterable_dataset"


@pytest.mark.parametrize("options", [{}, {"num_workers": 1, "persistent_workers": True}])
@pytest.mark.parametrize("taken", [3, 5])  # within the epoch and at its end
def test_epochs_after_one_that_a_stream_of_hugging_face_resumes_are_whole(options, taken):
    loader = DataLoader(IterableDataset(10), batch_size=2, **options)
    loader.state_dict()
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    if taken == 5:
        list(batches)
    state = loader.state_dict()
    fresh = DataLoader(IterableDataset(10), batch_size=2, **options)
    fresh.load_state_dict(state)
    assert flatten(fresh) == list(range(6 if taken == 3 else 0, 10))
    assert flatten(fresh) == flatten(fresh) == list(range(10))
