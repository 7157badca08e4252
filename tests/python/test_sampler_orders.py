# SPDX-License-Identifier: Apache-2.0
"""`loader(sampler=)`: torch's samplers and sequences as the order that ranks share; resume, errors."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import feedline

SIZE = 30


def dataset() -> feedline.Dataset:
    return feedline.arrays(x=np.arange(SIZE))


def indices(loader: feedline.Loader) -> list[int]:
    return [sample for _ in loader for sample in loader.last_samples]


class Rotated:
    """A sampler whose order depends on the epoch, like those of frameworks."""

    def __init__(self, size: int = SIZE) -> None:
        self.size, self.epoch = size, -1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter([(i + self.epoch) % SIZE for i in range(self.size)])

    def __len__(self) -> int:
        return self.size


class Growing:
    """A sampler without a length that yields different indices each time."""

    def __init__(self) -> None:
        self.passes = 0

    def __iter__(self) -> Iterator[int]:
        self.passes += 1
        yield from range(SIZE - self.passes, SIZE)


@pytest.mark.parametrize(
    "sampler",
    [
        [5, 3, 3, 29, 0],
        (5, 3, 3, 29, 0),
        np.array([5, 3, 3, 29, 0]),
        np.array([5, 3, 3, 29, 0], np.uint8),
        [np.int64(5), 3, 3, 29, 0],
    ],
)
def test_sequences_are_the_order_of_every_epoch(sampler: Any) -> None:
    with dataset().loader(2, output="numpy", sampler=sampler) as loader:
        assert len(loader) == 3
        assert [indices(loader) for _ in range(3)] == [[5, 3, 3, 29, 0]] * 3
        assert "in the sampler's order" in loader.explain()


def test_ranges_and_iterators_are_read_once() -> None:
    for sampler in (range(20, 4, -3), iter([20, 17, 14, 11, 8, 5]), (20 - 3 * i for i in range(6))):
        with dataset().loader(4, output="numpy", sampler=sampler) as loader:
            assert [indices(loader) for _ in range(2)] == [[20, 17, 14, 11, 8, 5]] * 2


def test_a_list_that_changes_later_does_not_change_the_order() -> None:
    order = [1, 2, 3]
    with dataset().loader(3, output="numpy", sampler=order) as loader:
        order.append(4)
        assert indices(loader) == [1, 2, 3]


def test_set_epoch_is_called_for_every_epoch() -> None:
    with dataset().loader(7, output="numpy", sampler=Rotated()) as loader:
        assert len(loader) == 5
        for epoch in range(3):
            assert indices(loader) == [(i + epoch) % SIZE for i in range(SIZE)]
        loader.set_epoch(9)
        next(iter(loader))
        assert indices(loader) == [(i + 10) % SIZE for i in range(SIZE)]  # iter() has abandoned epoch 9
    with dataset().loader(7, output="numpy", sampler=Rotated(), epochs=2) as loader:
        assert indices(loader) == [(i + epoch) % SIZE for epoch in range(2) for i in range(SIZE)]


def test_epochs_may_have_other_lengths() -> None:
    sampler = Growing()
    with dataset().loader(2, output="numpy", sampler=sampler) as loader:
        for count in range(1, 5):
            assert indices(loader) == list(range(SIZE - count, SIZE))
            assert len(loader) == (count + 1) // 2
    assert sampler.passes == 4


def test_torch_samplers() -> None:
    torch = pytest.importorskip("torch")
    data = torch.utils.data
    seeded = {"generator": torch.Generator().manual_seed(5)}
    again = {"generator": torch.Generator().manual_seed(5)}
    for sampler, same in (
        (data.SequentialSampler(range(SIZE)), data.SequentialSampler(range(SIZE))),
        (data.RandomSampler(range(SIZE), **seeded), data.RandomSampler(range(SIZE), **again)),
        (data.SubsetRandomSampler(range(0, 20, 2), **seeded), data.SubsetRandomSampler(range(0, 20, 2), **again)),
        (
            data.WeightedRandomSampler([1.0, 5.0, 0.0, 2.0], 50, **seeded),
            data.WeightedRandomSampler([1.0, 5.0, 0.0, 2.0], 50, **again),
        ),
    ):
        with dataset().loader(4, output="numpy", sampler=sampler) as loader:
            assert len(loader) == -(-len(same) // 4)
            assert [indices(loader) for _ in range(2)] == [list(same) for _ in range(2)]
    with dataset().loader(4, output="numpy", sampler=torch.tensor([2, 0, 1])) as loader:
        assert indices(loader) == [2, 0, 1]


def test_torchs_random_state_is_drawn_when_an_epoch_begins() -> None:
    torch = pytest.importorskip("torch")
    sampler = torch.utils.data.RandomSampler(range(SIZE))
    with dataset().loader(4, output="numpy", sampler=sampler) as loader:
        torch.manual_seed(3)
        ours = indices(loader)
    torch.manual_seed(3)
    assert ours == list(sampler)


def test_ranks_share_the_order_by_global_batches() -> None:
    order = np.random.default_rng(0).permutation(SIZE)[:24]
    for ranks in (1, 2, 4):
        rows = []
        for rank in range(ranks):
            with dataset().loader(8 // ranks, output="numpy", sampler=order, rank=rank, world_size=ranks) as loader:
                rows.append(np.reshape(indices(loader), (-1, 8 // ranks)))
        assert np.concatenate(rows, axis=1).ravel().tolist() == order.tolist()


def test_a_distributed_sampler_is_one_ranks_share() -> None:
    torch = pytest.importorskip("torch")
    sampler_of = torch.utils.data.DistributedSampler
    for rank in range(2):
        sampler = sampler_of(range(SIZE), num_replicas=2, rank=rank, seed=4)
        with dataset().loader(4, output="numpy", sampler=sampler, rank=rank, world_size=2) as loader:
            assert len(loader) == 4
            for epoch in range(2):
                same = sampler_of(range(SIZE), num_replicas=2, rank=rank, seed=4)
                same.set_epoch(epoch)
                assert indices(loader) == list(same)
    with pytest.raises(feedline.ConfigError, match="is for rank 1 of 2, but this process is rank 0 of 4"):
        dataset().loader(4, output="numpy", sampler=sampler, rank=0, world_size=4)


def test_one_state_resumes_the_shares_of_all_ranks() -> None:
    torch = pytest.importorskip("torch")

    def loader_of(rank: int, seed: int = 4) -> feedline.Loader:
        sampler = torch.utils.data.DistributedSampler(range(SIZE), num_replicas=2, rank=rank, seed=seed)
        return dataset().loader(4, output="numpy", sampler=sampler, rank=rank, world_size=2)

    with loader_of(0) as loader:
        list(loader)
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
    for rank in range(2):
        with loader_of(rank) as whole, loader_of(rank) as resumed:
            wanted = [indices(whole) for _ in range(3)]
            resumed.load_state_dict(state)
            assert [indices(resumed) for _ in range(2)] == [wanted[1][4:], wanted[2]]
    with loader_of(0, seed=5) as other, pytest.raises(feedline.ConfigError, match="a different order than in epoch 1"):
        other.load_state_dict(state)


@pytest.mark.parametrize("kind", ["list", "set_epoch", "generator"])
@pytest.mark.parametrize(("epoch", "step"), [(0, 0), (0, 3), (1, 1), (1, 5), (2, 0)])
def test_resume(kind: str, epoch: int, step: int) -> None:
    """During an epoch, at its start, and after its last batch."""
    torch = pytest.importorskip("torch")

    def loader_of(world_size: int = 1) -> feedline.Loader:
        generator = torch.Generator().manual_seed(5)
        sampler = {
            "list": list(range(SIZE))[::-1],
            "set_epoch": Rotated(),
            "generator": torch.utils.data.RandomSampler(range(SIZE), generator=generator),
        }[kind]
        return dataset().loader(6 // world_size, output="numpy", sampler=sampler, rank=0, world_size=world_size)

    with loader_of() as loader:
        whole = [indices(loader) for _ in range(4)]
    with loader_of() as loader:
        for _ in range(epoch):
            list(loader)
        batches = iter(loader) if step else iter(())
        for _ in range(step):
            next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
    rest = [whole[epoch][6 * step :], *whole[epoch + 1 :]]
    with loader_of() as loader:
        loader.load_state_dict(state)
        wanted = [order for order in rest if order]
        assert [indices(loader) for _ in wanted] == wanted
    if kind != "generator" or epoch == 0:
        with loader_of(2) as loader:  # the first half of each global batch
            loader.load_state_dict(state)
            first = np.reshape(wanted[0], (-1, 6))[:, :3].ravel().tolist()
            assert indices(loader) == first


def test_a_state_refuses_another_order() -> None:
    with dataset().loader(6, output="numpy", sampler=Rotated()) as loader:
        next(iter(loader))
        state = loader.state_dict()
    for sampler in (Rotated(SIZE - 1), list(range(SIZE))[::-1]):
        with (
            dataset().loader(6, output="numpy", sampler=sampler) as loader,
            pytest.raises(
                feedline.ConfigError,
                match=r"a different order than in epoch 0|sample weights, labels or indices that differ",
            ),
        ):
            loader.load_state_dict(state)
    with dataset().loader(6, output="numpy") as loader, pytest.raises(feedline.ConfigError, match="sampler="):
        loader.load_state_dict(state)


def test_ranks_refuse_a_sampler_that_each_would_draw_differently() -> None:
    torch = pytest.importorskip("torch")
    sampler = torch.utils.data.RandomSampler(range(SIZE))
    with pytest.raises(feedline.ConfigError, match=r"RandomSampler has no generator.*2 ranks"):
        dataset().loader(4, output="numpy", sampler=sampler, rank=0, world_size=2)


def test_repeated_indices_have_other_random_operations() -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8)
    cropped = feedline.arrays(image=images, fields=["image:image"]).random_crop(8)
    with cropped.loader(4, output="numpy", sampler=[1, 2, 1, 1]) as loader:
        batch = next(iter(loader))
    assert len({batch.image[row].tobytes() for row in (0, 2, 3)}) == 3
    assert batch.image[0].tobytes() == cropped.sample(1).image.tobytes()  # the first occurrence draws as usual


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        ([0, 1, 30], "position 2 is 30, but the dataset has 30 samples"),
        ([0, -1], "position 1 is -1; indices must be from 0 to 29"),
        ([0, 1.5], "position 1 is 1.5, which is not an integer"),
        ([True] * 30, r"position 0 is True; to select samples with a mask, use ds.filter\(mask\)"),
        ([[0, 1], [2, 3]], r"position 0 is \[0, 1\].*not the batch sampler"),
        ([], "the sampler returned no indices"),
        ("0123", "must be a torch sampler or a sequence of indices"),
        (7, "must be a torch sampler or a sequence of indices"),
        (np.zeros((2, 2), int), "must be a torch sampler or a sequence of indices"),
        (itertools.count(), "more than 1048576 indices for 30 samples"),
        (itertools.cycle(range(30)), "more than 1048576 indices for 30 samples"),
    ],
)
def test_bad_samplers(sampler: Any, words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=words):
        dataset().loader(4, output="numpy", sampler=sampler)


def test_indices_out_of_range_in_a_later_epoch() -> None:
    class Bad(Rotated):
        def __iter__(self) -> Iterator[int]:
            return iter([0, 1, 2 + 50 * self.epoch])

    with dataset().loader(4, output="numpy", sampler=Bad()) as loader:
        assert indices(loader) == [0, 1, 2]
        with pytest.raises(feedline.ConfigError, match="position 2 is 52"):
            list(loader)


def test_options_that_exclude_a_sampler() -> None:
    for options, words in (
        ({"shuffle": True}, "sampler or shuffle, not both"),
        ({"weights": [1] * SIZE}, "only one of sampler and weights"),
        ({"balanced": True}, "only one of sampler and balanced"),
        ({"buckets": 2}, "do not support buckets"),
    ):
        with pytest.raises(feedline.ConfigError, match=words):
            dataset().loader(4, output="numpy", sampler=[0, 1, 2], **options)


def test_a_samplers_exception_is_the_loaders() -> None:
    class Broken(Rotated):
        def __iter__(self) -> Iterator[int]:
            raise KeyError("weights")

    with dataset().loader(4, output="numpy", sampler=Broken()) as loader, pytest.raises(KeyError, match="weights"):
        iter(loader)
