# SPDX-License-Identifier: Apache-2.0
"""A state saved with another sampler is refused by a ConfigError about the sampler."""

import json

import numpy as np
import pytest

import feedline

torch = pytest.importorskip("torch")

ROWS = 24
DATASET = torch.utils.data.TensorDataset(torch.arange(ROWS))


def distributed(rank=0, ranks=2):
    return torch.utils.data.distributed.DistributedSampler(DATASET, ranks, rank)


TAKEN = {
    "distributed": lambda: {"sampler": distributed(), "batch_size": 4},
    "buckets": lambda: {"batch_sampler": feedline.BucketBatchSampler([1 + k % 3 for k in range(ROWS)], batch_size=4)},
}
RESUMED = {
    "shuffle": lambda: {"shuffle": True, "batch_size": 4},
    "no sampler": lambda: {"batch_size": 4},
    "indices": lambda: {"sampler": list(range(ROWS)), "batch_size": 4},
}


def state_after(batches, options):
    loader = feedline.DataLoader(DATASET, **options)
    iterator = iter(loader)
    for _ in range(batches):
        next(iterator)
    return json.loads(json.dumps(loader.state_dict()))


@pytest.mark.parametrize("batches", [0, 2])
@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("resumed", RESUMED)
def test_another_sampler_is_named(taken, resumed, batches):
    state = state_after(batches, TAKEN[taken]())
    loader = feedline.DataLoader(DATASET, **RESUMED[resumed]())
    with pytest.raises(feedline.ConfigError, match="sampler"):
        loader.load_state_dict(state)
    assert len(list(loader)) == ROWS // 4  # as without the refused call


@pytest.mark.parametrize("batches", [0, 2])
def test_the_same_kind_of_sampler_continues(batches):
    loader = feedline.DataLoader(DATASET, sampler=distributed(), batch_size=4)
    loader.load_state_dict(state_after(batches, TAKEN["distributed"]()))
    assert len(list(loader)) == 3 - batches


def test_states_of_the_other_kind_of_loader():
    native = feedline.arrays(x=np.arange(6)).loader(2, output="numpy")
    drop_in = feedline.DataLoader(DATASET)
    with pytest.raises(feedline.ConfigError, match="not a state of"):
        drop_in.load_state_dict(native.state_dict())
    with pytest.raises(feedline.ConfigError, match="state"):
        native.load_state_dict(drop_in.state_dict())


@pytest.mark.parametrize("value", [-1, float("nan"), "4", 10**18, True])
def test_a_stall_timeout_of_another_kind(value):
    with pytest.raises(feedline.ConfigError, match="stall_timeout"):
        feedline.DataLoader(DATASET, stall_timeout=value)


@pytest.mark.parametrize("buckets", [None, 2**63, 0, True, "8", [1, "2"], 1.5, []])
def test_buckets_of_another_kind(buckets):
    with pytest.raises(feedline.ConfigError, match="buckets"):
        feedline.BucketBatchSampler([1, 2, 3], 2, buckets=buckets)
