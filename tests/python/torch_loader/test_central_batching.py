# SPDX-License-Identifier: Apache-2.0
"""central_batching: full batches of a stream for any number of workers, without duplicates."""

from __future__ import annotations

import copy

import pytest
import torch
from stateful_cases import Positioned
from torch.utils.data import IterableDataset, get_worker_info

from feedline import ConfigError, DataLoader

SIZE = 23


class Shared(IterableDataset):
    """Workers have 23 samples in shares of different sizes; each sample is a pair of tensors."""

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for item in range(first, SIZE, step):
            yield torch.full((3,), item), item

    def __len__(self):
        return SIZE


class Unshared(IterableDataset):
    def __iter__(self):
        yield from range(SIZE)


pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def items(batches):
    return [batch[1].tolist() for batch in batches]


@pytest.mark.parametrize(
    ("batch_size", "workers", "method"),
    [(4, 1, "thread"), (4, 2, "thread"), (4, 3, "process"), (10, 3, "thread"), (30, 2, "process"), (30, 3, "thread")],
)
def test_all_batches_but_the_last_are_full_and_every_sample_comes_once(workers, batch_size, method):
    more = {"num_workers": workers, "worker_method": method, "central_batching": True}
    loader = DataLoader(Shared(), batch_size, **more)
    batches = list(loader)
    found = items(batches)
    assert sorted(item for batch in found for item in batch) == list(range(SIZE))
    assert [len(batch) for batch in found] == [batch_size] * (SIZE // batch_size) + [SIZE % batch_size]
    assert len(found) == len(loader), "torch's length, which is wrong of streams with workers otherwise"
    assert all(torch.equal(first[:, 0], second) and first.shape == (len(second), 3) for first, second in batches)
    full = items(DataLoader(Shared(), batch_size, drop_last=True, **more))
    assert full == found[:-1]


def test_without_it_batches_are_short_in_the_middle_as_torchs_are():
    found = items(DataLoader(Shared(), 5, num_workers=3, worker_method="thread"))
    assert [len(batch) for batch in found] == [5, 5, 5, 3, 3, 2]


@pytest.mark.parametrize("persistent", [False, True])
def test_a_dataset_that_does_not_share_itself_out_is_read_by_one_worker(persistent, caplog):
    loader = DataLoader(
        Unshared(), 4, num_workers=3, central_batching=True, persistent_workers=persistent, collate_fn=list
    )
    expected = [list(range(first, min(first + 4, SIZE))) for first in range(0, SIZE, 4)]
    assert [list(loader), list(loader)] == [expected, expected]
    assert "one of 3 workers reads it all" in caplog.text
    caplog.clear()
    list(loader)
    assert not caplog.records, "said once"


@pytest.mark.parametrize("dataset", [Shared, Positioned, Unshared])
def test_a_state_of_any_point_resumes(dataset):
    """Also after workers have ended, within their remaining samples."""

    def make():
        return DataLoader(dataset(), 4, num_workers=3, worker_method="thread", central_batching=True, collate_fn=flat)

    def flat(samples):
        return [sample[-1] if dataset is Shared else sample for sample in samples]

    loader = make()
    iterator = iter(loader)
    loader.state_dict()
    seen, states = [], []
    for batch in iterator:
        seen.append(batch)
        states.append(copy.deepcopy(loader.state_dict()))
    assert len(seen) == 6 and any(state.get("taken") for state in states)
    for count, state in enumerate(states, 1):
        resumed = make()
        resumed.load_state_dict(state)
        assert list(resumed) == seen[count:], count


def test_a_collate_fn_that_draws_has_the_same_numbers_with_a_seed():
    def draws():
        torch.manual_seed(torch.seed())
        loader = DataLoader(
            Shared(), 4, num_workers=3, central_batching=True, seed=3,
            collate_fn=lambda samples: [sample[1] for sample in samples] + [int(torch.randint(1 << 40, (1,)))],
        )  # fmt: skip
        return list(loader)

    assert draws() == draws()


def test_it_is_true_or_false():
    with pytest.raises(ConfigError, match="central_batching"):
        DataLoader(Shared(), central_batching="yes")
