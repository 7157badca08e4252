# SPDX-License-Identifier: Apache-2.0
"""Changes to a running loader: skipped batches, and attributes of the dataset in workers."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import stand_in_torchvision
import torch
from loader_datasets import flatten
from lowered import plan_of
from stateful_cases import GeneratorSampler, Plain, Positioned, Stateless
from torch.utils.data import BatchSampler, Dataset, DistributedSampler, RandomSampler, SequentialSampler, TensorDataset

from feedline import ConfigError, DataLoader
from feedline.torch_loader.iteration import orders
from feedline.torch_loader.iteration.orders import lean_iterator, pass_over, tensor_iterator

LOADERS = {
    "shuffled": lambda: DataLoader(
        Plain(), 4, shuffle=True, generator=torch.Generator().manual_seed(3), collate_fn=list
    ),
    "seeded": lambda: DataLoader(Plain(), 4, shuffle=True, seed=3, collate_fn=list),
    "workers": lambda: DataLoader(Plain(), 4, num_workers=2, collate_fn=list),
    "lowered": lambda: DataLoader(TensorDataset(torch.arange(23)), 4),
    "a stream": lambda: DataLoader(Stateless(), 4, collate_fn=list),
    "a stream in workers": lambda: DataLoader(Stateless(), 4, num_workers=2, worker_method="thread", collate_fn=list),
    "a stream with a state": lambda: DataLoader(Positioned(), 4, num_workers=2, collate_fn=list),
}


def plain(batches):
    return [[int(x) for x in batch[0]] if torch.is_tensor(batch[0]) else batch for batch in batches]


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("count", [0, 1, 3, 20])
def test_skipped_batches_are_those_that_would_have_come_next(kind, count):
    whole = plain(LOADERS[kind]())
    loader = LOADERS[kind]()
    loader.skip(count)
    assert plain(loader) == whole[count:]


@pytest.mark.parametrize("kind", LOADERS)
def test_skipping_within_an_epoch(kind):
    expected = LOADERS[kind]()
    whole, following = plain(expected), plain(expected)
    loader = LOADERS[kind]()
    loader.state_dict()
    iterator = iter(loader)
    begun = plain([next(iterator)])
    loader.skip(2)
    assert begun + plain(loader) == whole[:1] + whole[3:]
    assert plain(loader) == following, "the next epoch is whole"


class Endless(Dataset):
    """More samples than could be counted one by one."""

    def __len__(self):
        return 10**15

    def __getitem__(self, index):
        return index


@pytest.mark.parametrize("workers", [0, 1])
def test_skipping_takes_no_longer_for_more_batches(workers):
    loader = DataLoader(Endless(), 8, num_workers=workers, worker_method="thread", collate_fn=list)
    loader.skip(10**14)
    assert next(iter(loader)) == list(range(8 * 10**14, 8 * 10**14 + 8))


SAMPLERS = {
    "in sequence": lambda count, generator: SequentialSampler(range(count)),
    "shuffled": lambda count, generator: RandomSampler(range(count), generator=generator),
    "two permutations and a half": lambda count, generator: RandomSampler(
        range(count), num_samples=5 * count // 2, generator=generator
    ),
    "a few of a permutation": lambda count, generator: RandomSampler(
        range(count), num_samples=count // 3, generator=generator
    ),
    "of a rank": lambda count, generator: DistributedSampler(range(count), num_replicas=2, rank=1, seed=5),
}


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("draw_order", [lean_iterator, tensor_iterator])
def test_what_is_passed_over_leaves_the_rest_as_torch_gives_it(kind, drop_last, draw_order, monkeypatch):
    monkeypatch.setattr(orders, "_CHUNK", 16)
    for count in (98, 100):

        def made(count=count):
            generator = torch.Generator().manual_seed(3)
            return generator, BatchSampler(SAMPLERS[kind](count, generator), 7, drop_last)

        generator, sampler = made()
        expected = list(sampler)
        for begun, skipped in [(0, 0), (0, 1), (0, 4), (1, 5), (3, 2), (2, 100)]:
            ours, sampler = made()
            order = draw_order(sampler, iter(sampler))
            found = [next(order) for _ in range(begun)]
            passed = pass_over(order, skipped)
            found += [None] * passed + list(order)
            wanted = expected[:begun] + [None] * passed + expected[begun + passed :]
            assert [None if one is None else [int(i) for i in one] for one in found] == wanted
            assert passed >= min(skipped, len(expected) - begun - 1)
            assert torch.equal(ours.get_state(), generator.get_state())


def test_what_only_drawing_tells_is_not_skipped():
    with pytest.raises(ConfigError, match="sampler's own state"):
        DataLoader(Plain(), 4, sampler=GeneratorSampler()).skip(1)
    with pytest.raises(ConfigError, match="must be from 0 to"):
        DataLoader(Plain(), 4).skip(-1)


def test_counts_of_numpy_are_skipped():
    loader = DataLoader(Plain(), 4)
    whole = [batch.tolist() for batch in loader]
    loader.skip(np.int64(2))
    assert [batch.tolist() for batch in loader] == whole[2:]


class Scaled(Dataset):
    def __init__(self, part=None):
        self.scale, self.part = 1, part

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return index * (self.scale if self.part is None else self.part.scale)


def one_to(factor):
    return [index * factor for index in range(12)]


@pytest.mark.parametrize("more", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True},
                                  {"num_workers": 2, "persistent_workers": True, "worker_method": "thread"},],
                         ids=["none", "fresh", "persistent", "threads"])  # fmt: skip
def test_an_attribute_reaches_every_worker(more):
    loader = DataLoader(Scaled(Scaled()), 4, **more)
    loader.dataset.part = Scaled()
    assert flatten(loader) == one_to(1)
    loader.broadcast("part.scale", 3)
    assert loader.dataset.part.scale == 3 and flatten(loader) == one_to(3)
    assert flatten(loader) == one_to(3)


@pytest.mark.skipif(os.environ.get("FEEDLINE_PROOFS") != "long", reason="spawns two processes: FEEDLINE_PROOFS=long")
def test_a_worker_that_takes_the_place_of_a_dead_one_has_it_too():
    loader = DataLoader(
        Scaled(), 4, num_workers=1, persistent_workers=True, multiprocessing_context="spawn", on_error="skip"
    )
    assert flatten(loader) == one_to(1)
    loader.broadcast("scale", 5)
    iterator = iter(loader)
    os.kill(iterator._workers[0].pid, signal.SIGKILL)
    assert flatten(iterator) == one_to(5)


def test_a_part_that_is_not_there_is_an_error_here():
    with pytest.raises(AttributeError):
        DataLoader(Scaled(), 4).broadcast("transform.size", 3)


def shape(tensor):
    """A user's function, which runs in Python after the native part in workers."""
    return tuple(tensor.shape)


def test_transforms_that_run_natively_in_workers_are_rebuilt(folder):
    with stand_in_torchvision.vision() as vision:
        of = vision.transforms

        dataset = vision.datasets.ImageFolder(folder, of.Compose([of.Resize((20, 20)), of.ToTensor(), shape]))
        loader = DataLoader(dataset, 2, num_workers=1, persistent_workers=True, collate_fn=list)
        assert plan_of(loader) == "prefix"
        sizes = []
        for size in (20, 30):
            loader.broadcast("transform.transforms", [of.Resize((size, size)), of.ToTensor(), shape])
            sizes.append({found for batch in loader for found, _ in batch})
        assert sizes == [{(3, 20, 20)}, {(3, 30, 30)}]
