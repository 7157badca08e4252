# SPDX-License-Identifier: Apache-2.0
"""torchdata's stateful protocol: an interrupted run delivers the same as an uninterrupted one."""

from __future__ import annotations

import copy

import pytest
import torch
from stateful_cases import (
    Counting,
    CountsCalls,
    GeneratorSampler,
    GloballyShuffled,
    Plain,
    Positioned,
    Shuffled,
    draw,
    outcomes,
    take,
)
from torch.utils.data import DistributedSampler, RandomSampler

import feedline
from feedline import DataLoader


@pytest.mark.parametrize("first", range(0, 300, 60))
def test_without_workers(first):
    for seed in range(first, first + 60):
        case = draw(seed, workers=(0,))
        expected, resumed = outcomes(case, DataLoader)
        assert resumed == expected, (seed, case)


@pytest.mark.parametrize("seed", [1001, 1007, 1013, 1022, 1038, 1042, 1050])
def test_with_workers(seed):
    case = draw(seed, workers=(1, 2))
    expected, resumed = outcomes(case, DataLoader)
    assert resumed == expected, case


@pytest.mark.parametrize("dataset", [Plain, Counting, Shuffled, Positioned, CountsCalls])
@pytest.mark.parametrize("order", ["sequential", "generator", "distributed", "stateful"])
def test_a_state_is_equal_where_a_resumed_run_and_one_that_went_on_are_at_the_same_point(dataset, order):
    """Lightning compares the states, base seeds included, in this epoch and later ones."""
    if order != "sequential" and not issubclass(dataset, Plain):
        pytest.skip("a stream has no sampler")

    def make():
        more = {
            "sequential": dict,
            "generator": lambda: {"sampler": RandomSampler(range(23), generator=torch.Generator().manual_seed(1))},
            "distributed": lambda: {"sampler": DistributedSampler(range(23), 2, 1)},
            "stateful": lambda: {"sampler": GeneratorSampler()},
        }[order]()
        return DataLoader(dataset(), batch_size=3, collate_fn=list, **more)

    def states(loader, iterator):
        seen = []
        for batch in iterator:
            seen.append((batch, plain(loader.state_dict())))
        seen.append(plain(loader.state_dict()))
        return seen

    torch.manual_seed(1)
    loader = make()
    iterator = iter(loader)
    take(iterator, 2)
    state = copy.deepcopy(loader.state_dict())
    expected = [states(loader, iterator), states(loader, loader)]
    torch.manual_seed(2)
    resumed = make()
    resumed.load_state_dict(state)
    assert plain(resumed.state_dict()) == plain(state)
    found = [states(resumed, resumed) for _ in expected]
    if order == "stateful":  # it is unknown whether the next epoch's order comes from the process's generators
        del expected[1:], expected[0][-1], found[1:], found[0][-1]
    assert found == expected


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("persistent", [False, True])
def test_a_state_before_the_first_epoch_has_the_base_seed_of_workers(persistent):
    def make():
        return DataLoader(GloballyShuffled(), 4, num_workers=2, persistent_workers=persistent, collate_fn=list)

    torch.manual_seed(1)
    loader = make()
    state = copy.deepcopy(loader.state_dict())
    expected = list(loader)
    torch.manual_seed(2)
    resumed = make()
    resumed.load_state_dict(state)
    assert list(resumed) == expected


def test_a_state_at_the_end_of_an_epoch_has_the_order_of_the_next():
    """Also if it comes from the process's generators."""
    torch.manual_seed(1)
    loader = DataLoader(Plain(), 4, shuffle=True, collate_fn=list)
    list(loader)
    state = copy.deepcopy(loader.state_dict())
    expected = list(loader)
    torch.manual_seed(2)
    resumed = DataLoader(Plain(), 4, shuffle=True, collate_fn=list)
    resumed.load_state_dict(state)
    assert list(resumed) == expected


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("stop", [None, 2])
def test_the_process_s_generators_continue_where_a_run_that_was_not_interrupted_has_them(workers, stop):
    """If the user also restores them, in addition to the loader's state, all later epochs have the same orders."""

    def orders(loader, iterator):
        return [list(iterator), list(loader), list(loader)], torch.get_rng_state().tolist()

    def make():
        return DataLoader(Plain(), 4, shuffle=True, num_workers=workers, collate_fn=list)

    torch.manual_seed(1)
    loader = make()
    list(loader)
    iterator = loader if stop is None else iter(loader)
    if stop is not None:
        take(iterator, stop)
    state, generator = copy.deepcopy(loader.state_dict()), torch.get_rng_state()
    expected = orders(loader, iterator)
    resumed = make()
    resumed.load_state_dict(state)
    torch.set_rng_state(generator)
    assert orders(resumed, resumed) == expected


@pytest.mark.parametrize("dataset", [Counting, Positioned, CountsCalls])
@pytest.mark.parametrize("every", [None, "auto"])
def test_workers_that_live_on_are_asked_for_a_state_first_when_an_epoch_has_ended(dataset, every):
    def make():
        return DataLoader(
            dataset(), 4, num_workers=2, persistent_workers=True, collate_fn=list, snapshot_every_n_steps=every
        )

    loader = make()
    list(loader)
    state = copy.deepcopy(loader.state_dict())
    expected = list(loader)
    resumed = make()
    resumed.load_state_dict(state)
    assert list(resumed) == expected


def test_a_state_of_other_workers_leaves_out_what_their_datasets_reported(caplog):
    loader = DataLoader(Counting(), 4, num_workers=1, collate_fn=list)
    iterator = iter(loader)
    take(iterator, 2)
    resumed = DataLoader(Counting(), 4, num_workers=2, collate_fn=list)
    resumed.load_state_dict(loader.state_dict())
    assert [index for batch in resumed for index, _ in batch] == list(range(8, 23))
    assert "because this loader has 2" in caplog.text
    del iterator


def test_code_written_for_torchdata_finds_the_loader_by_its_name():
    assert feedline.StatefulDataLoader is DataLoader
