# SPDX-License-Identifier: Apache-2.0
"""Weights of samples and balanced classes: distributions, ranks, resume, changes between epochs, errors."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import feedline

SIZES = (400, 60, 20)  # samples of three classes
LABELS = np.repeat(np.arange(3), SIZES)


def labelled() -> feedline.Dataset:
    return feedline.arrays(x=np.arange(len(LABELS)), label=LABELS)


def epochs(dataset: feedline.Dataset, count: int, batch_size: int = 16, **options: Any) -> list[list[int]]:
    """Returns the samples of each epoch, in order."""
    with dataset.loader(batch_size, output="numpy", **options) as loader:
        return [[sample for _ in loader for sample in loader.last_samples] for _ in range(count)]


def all_of(dataset: feedline.Dataset, count: int, **options: Any) -> Counter[int]:
    return Counter(sample for epoch in epochs(dataset, count, **options) for sample in epoch)


def chi_square_p(counts: Counter[int], shares: np.ndarray) -> float:
    stats = pytest.importorskip("scipy.stats")
    drawn = np.array([counts[i] for i in range(len(shares))])
    assert (drawn[shares == 0] == 0).all()
    used = shares > 0
    return float(stats.chisquare(drawn[used], shares[used] / shares.sum() * drawn.sum()).pvalue)


@pytest.mark.parametrize("seed", [0, 7])
def test_draws_follow_the_weights(seed: int) -> None:
    """The distribution of torch's WeightedRandomSampler with replacement: shares of the sum, never for weight zero."""
    weights = np.random.default_rng(3).gamma(0.7, size=100)
    weights[[0, 50, 99]] = 0
    drawn = all_of(feedline.arrays(x=np.arange(100)), 200, weights=weights, seed=seed)
    assert drawn.total() == 200 * 100
    assert chi_square_p(drawn, weights) > 0.001


def test_draws_of_an_epoch_are_independent() -> None:
    """Pairs of successive draws are as frequent as the product of their weights, within and across epochs."""
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    dataset = feedline.arrays(x=np.arange(4))
    flat = [sample for epoch in epochs(dataset, 5000, batch_size=4, weights=weights) for sample in epoch]
    pairs = Counter(4 * a + b for a, b in itertools.pairwise(flat))
    assert chi_square_p(pairs, np.outer(weights, weights).ravel()) > 0.001


def test_torch_draws_the_same_distribution() -> None:
    torch_data = pytest.importorskip("torch.utils.data")
    weights = [0.1, 5.0, 0.0, 2.5, 1.0]
    theirs: Counter[int] = Counter(torch_data.WeightedRandomSampler(weights, 50_000))
    ours = all_of(feedline.arrays(x=np.arange(5)), 10_000, batch_size=5, weights=weights)
    for i in range(5):
        assert abs(theirs[i] - ours[i]) <= 5 * math.sqrt(50_000 * 0.25)
    assert theirs[2] == ours[2] == 0


@pytest.mark.parametrize("weights", [[1] * 6, (1, 0, 0, 0, 0, 0), np.float32([1, 2, 3, 4, 5, 6]), range(6)])
def test_forms_of_weights(weights: Any) -> None:
    drawn = all_of(feedline.arrays(x=np.arange(6)), 30, weights=weights)
    assert set(drawn) == {i for i in range(6) if weights[i] > 0}


def test_balanced_draws_classes_equally() -> None:
    drawn = all_of(labelled(), 40, balanced=True)
    assert drawn.total() == 40 * len(LABELS)
    classes: Counter[int] = Counter()
    for sample, times in drawn.items():
        classes[int(LABELS[sample])] += times
    assert chi_square_p(classes, np.ones(3)) > 0.001
    smallest = Counter({s - 460: n for s, n in drawn.items() if s >= 460})
    assert chi_square_p(smallest, np.ones(20)) > 0.001  # samples of a class equally, too


@pytest.mark.parametrize("shuffle", [False, True])
def test_undersample_takes_as_many_of_each_class(shuffle: bool) -> None:
    dataset = labelled()
    runs = epochs(dataset, 200, balanced="undersample", shuffle=shuffle)
    for epoch in runs:
        assert len(set(epoch)) == len(epoch) == 60
        assert Counter(LABELS[epoch].tolist()) == {0: 20, 1: 20, 2: 20}
    assert runs[0] != runs[1]
    drawn = Counter(sample for epoch in runs for sample in epoch)
    # without replacement within an epoch the counts vary less than independent draws would
    assert chi_square_p(Counter({s: n for s, n in drawn.items() if s < 400}), np.ones(400)) > 0.001
    with dataset.loader(16, output="numpy", balanced="undersample") as loader:
        assert len(loader) == 4
        assert "20 samples from each of 3 classes" in loader.explain()


def test_positions_are_not_sorted_by_class() -> None:
    stats = pytest.importorskip("scipy.stats")
    order = epochs(labelled(), 1, balanced="undersample")[0]
    assert stats.spearmanr(range(60), LABELS[order]).pvalue > 0.001


ORDERS: dict[str, dict[str, Any]] = {
    "weights": {"weights": 1.0 + LABELS},
    "balanced": {"balanced": True},
    "undersample": {"balanced": "undersample"},
}


@pytest.mark.parametrize("kind", ORDERS)
def test_the_same_for_any_number_of_threads_and_ranks(kind: str) -> None:
    dataset, options = labelled(), ORDERS[kind]
    whole = epochs(dataset, 2, batch_size=12, num_workers=1, **options)
    assert whole == epochs(dataset, 2, batch_size=12, num_workers=4, **options)
    assert whole[0] != whole[1] != epochs(dataset, 2, batch_size=12, seed=1, **options)[1]
    for ranks in (2, 4):
        shares = [
            epochs(dataset, 2, batch_size=12 // ranks, rank=rank, world_size=ranks, **options) for rank in range(ranks)
        ]
        for epoch in range(2):
            rows = [np.reshape(shares[rank][epoch], (-1, 12 // ranks)) for rank in range(ranks)]
            assert np.concatenate(rows, axis=1).ravel().tolist() == whole[epoch]


@pytest.mark.parametrize("kind", ORDERS)
def test_resume_amid_an_epoch_on_half_the_ranks(kind: str) -> None:
    dataset, options = labelled(), {"output": "numpy", **ORDERS[kind]}
    whole = epochs(dataset, 3, batch_size=12, **ORDERS[kind])
    for epoch, step in ((0, 0), (1, 3), (1, 5)):
        with dataset.loader(3, rank=1, world_size=4, **options) as first:
            for _ in range(epoch):
                list(first)
            batches = iter(first)
            for _ in range(step):
                next(batches)
            state = json.loads(json.dumps(first.state_dict()))
        rest: list[list[int]] = []
        for rank in range(2):
            with dataset.loader(6, rank=rank, world_size=2, **options) as loader:
                loader.load_state_dict(state)
                rest.append([s for _ in range(2) if loader.epoch < 3 for _ in loader for s in loader.last_samples])
        merged = np.concatenate([np.reshape(r, (-1, 6)) for r in rest], axis=1).ravel().tolist()
        wanted = [*whole[epoch][12 * step :], *whole[epoch + 1]]
        assert merged == wanted


def test_a_sample_drawn_twice_has_other_random_operations() -> None:
    images = np.random.default_rng(0).integers(0, 256, (1, 40, 40, 3), dtype=np.uint8)
    dataset = feedline.arrays(image=images, fields=["image:image"]).repeat(8).random_crop(8)
    with dataset.loader(8, output="numpy", weights=[0, 0, 1, 0, 0, 0, 0, 0]) as loader:
        for batch in loader:
            assert loader.last_samples == [2] * 8
            assert len({row.tobytes() for row in batch.image}) > 4


def test_set_weights_takes_effect_at_the_next_epoch() -> None:
    dataset = feedline.arrays(x=np.arange(8))
    only = np.eye(8)
    with dataset.loader(2, output="numpy", weights=only[0]) as loader:
        batches = iter(loader)
        next(batches)
        loader.set_weights(only[5])
        for _ in batches:
            assert loader.last_samples == [0, 0]
        for _ in range(2):
            assert [s for _ in loader for s in loader.last_samples] == [5] * 8
        loader.set_weights([1] * 8)
        loader.set_weights(only[6])
        assert [s for _ in loader for s in loader.last_samples] == [6] * 8
        assert len(loader) == 4


def test_set_weights_gives_the_order_of_a_new_loader() -> None:
    dataset = labelled()
    with dataset.loader(16, output="numpy", balanced=True) as loader:
        list(loader)
        loader.set_weights(1.0 + LABELS)
        changed = [s for _ in loader for s in loader.last_samples]
    assert changed == epochs(dataset, 2, weights=1.0 + LABELS)[1]


def test_a_state_refuses_other_weights() -> None:
    dataset = labelled()
    with dataset.loader(16, output="numpy", weights=1.0 + LABELS) as loader:
        next(iter(loader))
        state = loader.state_dict()
        rest = [s for _ in loader for s in loader.last_samples]
    assert len(json.dumps(state)) < 1024
    for options, words in (
        ({"weights": 2.0 + LABELS}, "sample weights, labels or indices that differ"),
        ({"balanced": True}, "sample weights, labels or indices that differ"),
        ({}, "saved with weights=, balanced= or sampler="),
    ):
        with (
            dataset.loader(16, output="numpy", **options) as other,
            pytest.raises(feedline.ConfigError, match=words),
        ):
            other.load_state_dict(state)
    with dataset.loader(16, output="numpy") as plain:
        before = plain.state_dict()
    with dataset.loader(16, output="numpy", balanced=True) as other:
        with pytest.raises(feedline.ConfigError, match="every sample once"):
            other.load_state_dict(before)
        assert len([s for _ in other for s in other.last_samples]) == len(LABELS)  # the refused call changed nothing
    with dataset.loader(16, output="numpy", balanced=True) as other:
        other.set_weights(1.0 + LABELS)
        other.load_state_dict(state)  # the state's weights were set before
        list(other)
        assert [s for _ in other for s in other.last_samples] == rest


def test_weights_set_after_a_resume_wait_for_the_next_epoch() -> None:
    dataset, only = feedline.arrays(x=np.arange(8)), np.eye(8)
    with dataset.loader(2, output="numpy", weights=only[1]) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with dataset.loader(2, output="numpy", weights=only[1]) as loader:
        loader.load_state_dict(state)
        loader.set_weights(only[2])
        assert [s for _ in loader for s in loader.last_samples] == [1] * 6
        assert [s for _ in loader for s in loader.last_samples] == [2] * 8


def test_weights_of_a_mixture_change_and_are_in_the_state() -> None:
    parts = [feedline.arrays(x=np.arange(50)), feedline.arrays(x=np.arange(100, 250))]
    mixed = feedline.mix(parts, [1, 1], samples=60)

    def shares(epoch: list[int]) -> list[int]:
        return [sum(s < 50 for s in epoch), sum(s >= 50 for s in epoch)]

    def curriculum(loader: feedline.Loader, epoch: int) -> list[int]:
        loader.set_weights([1, epoch + 1])
        return [s for _ in loader for s in loader.last_samples]

    options: dict[str, Any] = {"shuffle": True, "output": "numpy"}
    with mixed.loader(10, **options) as loader:
        whole = [curriculum(loader, epoch) for epoch in range(4)]
    assert [shares(epoch) for epoch in whole] == [[30, 30], [20, 40], [15, 45], [12, 48]]
    # passes continue: 77 draws of 50 samples and 163 of 150, none three times before all others were drawn
    assert set(Counter(s for epoch in whole for s in epoch).values()) == {1, 2}
    assert {s for epoch in whole for s in epoch} == set(range(200))
    for at in (0, 2):
        with mixed.loader(10, **options) as loader:
            for epoch in range(2):
                curriculum(loader, epoch)
            loader.set_weights([1, 3])
            batches = iter(loader)
            for _ in range(at):
                next(batches)
            state = json.loads(json.dumps(loader.state_dict()))
            assert state["mix"]["weights"] == [1, 3]
        with mixed.loader(10, **options) as loader:
            loader.load_state_dict(state)
            assert curriculum(loader, 2) == whole[2][10 * at :]
            assert curriculum(loader, 3) == whole[3]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 1, -0.5, 1], "weight of sample 2 is -0.5"),
        ([1, math.nan, 1, 1], "weight of sample 1 is nan"),
        ([1, 1, 1, math.inf], "weight of sample 3 is inf"),
        ([0, 0, 0, 0], "all weights are 0"),
        ([1.7e308] * 4, "sum of the weights is not finite"),
        ([1, 1, 1], "3 were given for 4 samples"),
        ([], "0 were given for 4 samples"),
        ([1, 1, "2", 1], "weight at position 2 is '2'"),
        ([1, True, 1, 1], "weight at position 1 is True"),
        ([1, 1, 10**400, 1], "weight at position 2 is too large"),
        ("1111", "must be a list or an array"),
        (3, "must be a list or an array"),
        (np.ones((4, 1)), r"position 0 is \[1.0\]"),
    ],
)
def test_bad_weights(weights: Any, words: str) -> None:
    dataset = feedline.arrays(x=np.arange(4))
    with pytest.raises(feedline.ConfigError, match=words):
        dataset.loader(2, output="numpy", weights=weights)
    with (
        dataset.loader(2, output="numpy", weights=[1] * 4) as loader,
        pytest.raises(feedline.ConfigError, match=words),
    ):
        loader.set_weights(weights)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": [1] * 480, "balanced": True}, "only one of weights and balanced"),
        ({"weights": [1] * 480, "shuffle": "shards"}, 'weights does not support shuffle="shards"'),
        ({"balanced": "oversample"}, "balanced must be True, False or"),
        ({"balanced": True, "world_size": 481, "rank": 0}, "exceeds the 480 samples"),
        ({"balanced": "undersample", "world_size": 61, "rank": 0}, "exceeds the 60 samples"),
    ],
)
def test_options_that_exclude_each_other(options: dict[str, Any], words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=words):
        labelled().loader(16, output="numpy", **options)


def test_what_has_no_weights() -> None:
    mixed = feedline.mix([labelled(), labelled()])
    with pytest.raises(feedline.ConfigError, match="do not support a mixture"):
        mixed.loader(16, output="numpy", weights=[1] * 960)
    with mixed.loader(16, output="numpy") as loader:
        with pytest.raises(feedline.ConfigError, match="weight of dataset 1 is -1"):
            loader.set_weights([1, -1])
        with pytest.raises(feedline.ConfigError, match="2 datasets need the same number of weights, got 3"):
            loader.set_weights([1, 1, 1])
    with labelled().loader(16, output="numpy") as loader, pytest.raises(feedline.ConfigError, match="has no weights"):
        loader.set_weights([1] * 480)
    with pytest.raises(feedline.ConfigError, match=r"no field is called label, .*the fields are x"):
        feedline.arrays(x=np.arange(4)).loader(2, output="numpy", balanced=True)


def test_replaced_samples_are_from_the_selection() -> None:
    """A bad sample's substitute must not be one that the weights exclude."""

    def fails_for_some(sample: dict[str, Any]) -> dict[str, Any]:
        if sample["x"] % 3 == 0:
            raise ValueError("bad")
        return sample

    dataset = feedline.arrays(x=np.arange(60)).map(fails_for_some)
    weights = [float(i < 20) for i in range(60)]
    with dataset.loader(10, output="numpy", weights=weights, on_error="replace") as loader:
        seen = [int(x) for _ in range(5) for batch in loader for x in batch.x]
    assert len(seen) == 300
    assert set(seen) <= {i for i in range(20) if i % 3}
