# SPDX-License-Identifier: Apache-2.0
"""Distributed samplers without repetitions: torch's order, every sample once."""

from __future__ import annotations

import pytest
from torch.utils.data import DistributedSampler as TorchSampler

import feedline
from feedline import ConfigError, DataLoader, DistributedSampler


def orders(kind, size, ranks, **more):
    return [list(kind(range(size), ranks, rank, **more)) for rank in range(ranks)]


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 11])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_sample_comes_once_in_torchs_order_without_the_repeats(size, ranks, shuffle):
    found = orders(DistributedSampler, size, ranks, shuffle=shuffle, seed=4)
    assert sorted(index for order in found for index in order) == list(range(size))
    for rank, order in enumerate(found):
        sampler = DistributedSampler(range(size), ranks, rank, shuffle=shuffle, seed=4)
        assert isinstance(sampler, TorchSampler) and len(sampler) == len(order)
        if size:
            theirs = list(TorchSampler(range(size), ranks, rank, shuffle=shuffle, seed=4))
            assert theirs[: len(order)] == order and len(theirs) - len(order) in (0, 1)


def test_drop_last_is_torchs():
    assert orders(DistributedSampler, 9, 2, drop_last=True) == orders(TorchSampler, 9, 2, drop_last=True)


def test_a_loader_makes_torchs_sampler_exact_where_asked():
    sampler = TorchSampler(range(9), 2, 1, seed=3)
    sampler.set_epoch(5)
    loader = DataLoader(range(9), 2, sampler=sampler, uneven="exact", collate_fn=list)
    assert type(loader.sampler) is DistributedSampler and loader.uneven == "exact"
    assert [index for batch in loader for index in batch] == list(sampler)[:4]
    remade = DataLoader(range(9), 2, sampler=loader.sampler, uneven="exact")
    assert remade.sampler is loader.sampler
    assert DataLoader(range(9), sampler=sampler).sampler is sampler, "torch's as it is without it"
    with pytest.raises(ConfigError, match="uneven"):
        DataLoader(range(9), uneven="some")


def test_a_loader_counts_its_epochs_and_resumes():
    def make():
        return DataLoader(range(23), 4, sampler=feedline.DistributedSampler(range(23), 2, 1), collate_fn=list)

    loader = make()
    first, second = list(loader), iter(loader)
    begun = [next(second)]
    state = loader.state_dict()
    assert "torch" not in state["randomness"], "nothing but its seed and epoch"
    resumed = make()
    resumed.load_state_dict(state)
    assert begun + list(resumed) == begun + list(second) != first
