# SPDX-License-Identifier: Apache-2.0
"""Several datasets by weight: the frequency of each, the end of an epoch, and errors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import training
from hypothesis import given, settings
from hypothesis import strategies as st

import feedline


def numbers(size: int, first: int = 0) -> feedline.Dataset:
    return feedline.arrays(x=np.arange(first, first + size))


def values(dataset: feedline.Dataset, batch_size: int = 8, **options: Any) -> list[int]:
    with dataset.loader(batch_size, epochs=1, output="numpy", **options) as loader:
        return [int(value) for batch in loader for value in batch.x]


def test_by_size_every_sample_comes_once() -> None:
    mixed = feedline.mix([numbers(30), numbers(70, 100), numbers(1, 500)])
    assert len(mixed) == 101
    assert sorted(values(mixed, shuffle=True)) == [*range(30), *range(100, 170), 500]
    assert values(mixed, shuffle=True) != values(mixed)


def test_in_order_the_parts_take_turns() -> None:
    mixed = feedline.mix([numbers(10), numbers(10, 100)], weights=[1, 1])
    assert values(mixed) == [x for pair in zip(range(100, 110), range(10), strict=True) for x in pair] or values(
        mixed
    ) == [x for pair in zip(range(10), range(100, 110), strict=True) for x in pair]


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    weights=st.lists(st.floats(0.05, 10), min_size=4, max_size=4),
    shuffle=st.booleans(),
    ranks=st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_ends_with_the_first_or_the_last(sizes: list[int], weights: list[float], shuffle: bool, ranks: int) -> None:
    parts = [numbers(size, 1000 * i) for i, size in enumerate(sizes)]
    shares = weights[: len(sizes)]

    def counts(until: str) -> list[Counter[int]]:
        mixed = feedline.mix(parts, shares, until=until)
        seen: list[int] = []
        try:
            for rank in range(ranks):
                options = {"rank": rank, "world_size": ranks, "uneven": "exact", "shuffle": shuffle}
                seen += values(mixed, **options)
        except feedline.ConfigError as error:
            assert "world_size" in str(error)  # fewer samples than ranks
            return []
        return [Counter(v for v in seen if v // 1000 == i) for i in range(len(parts))]

    first = counts("first")
    if first:
        assert all(max(part.values(), default=0) <= 1 for part in first)  # nothing twice
        assert any(sum(part.values()) >= size - 1 for part, size in zip(first, sizes, strict=True))
    last = counts("last")
    if last:
        assert all(len(part) == size for part, size in zip(last, sizes, strict=True))  # nothing missed
        for part in last:
            assert max(part.values()) - min(part.values()) <= 1


def test_weights_hold_in_every_stretch() -> None:
    mixed = feedline.mix([numbers(10_000), numbers(10_000, 10**6), numbers(10, 2 * 10**6)], [0.6, 0.3, 0.1])
    seen = np.array(values(mixed, 256, shuffle=True, seed=3)) // 10**6
    for end in range(4096, len(seen), 4096):
        for part, weight in enumerate((0.6, 0.3, 0.1)):
            assert abs(int((seen[:end] == part).sum()) - weight * end) <= 3
    batches = seen[: len(seen) // 256 * 256].reshape(-1, 256)
    share = (batches == 0).mean(axis=1)
    assert share.std() > 0.01  # varies like a random draw, not in step with the batches
    assert abs(share.mean() - 0.6) < 0.01


def test_a_sample_that_comes_again_gets_another_crop(folder: Path) -> None:
    photos = feedline.open(folder).random_resized_crop(16)
    mixed = feedline.mix([photos], samples=63)
    images: dict[int, set[bytes]] = {}
    with mixed.loader(9, shuffle=True, epochs=1, output="numpy") as loader:
        for batch in loader:
            for sample, image in zip(loader.last_samples, batch.image, strict=True):
                images.setdefault(sample, set()).add(image.tobytes())
    assert {len(crops) for crops in images.values()} == {3}


def test_single_samples_classes_and_schema(folder: Path, tars: list[Path]) -> None:
    photos, shards = training(feedline.open(folder)), training(feedline.open(tars))
    mixed = feedline.mix([photos, shards])
    assert len(mixed) == 42
    assert mixed.schema == photos.schema
    assert mixed.classes == []  # a tar does not have labels
    assert feedline.mix([photos, photos]).classes == photos.classes
    for index in (0, 20):
        assert mixed[index].image.tobytes() == photos[index].image.tobytes()
        assert mixed[21 + index].label == shards[index].label
    assert mixed.key(3) == photos.key(3)
    assert "mix(" in mixed.source
    with mixed.loader(4, output="numpy") as loader:
        assert "mixed, 42 per epoch" in loader.explain()


def test_damage_in_a_part_is_named(folder: Path, tmp_path: Path) -> None:
    import made_data

    root = made_data.make_folder(tmp_path / "bad")
    (root / "birch" / "003.jpg").write_bytes(b"not an image")
    mixed = feedline.mix([training(feedline.open(folder)), training(feedline.open(root))])
    with mixed.loader(4, on_error="skip", epochs=1, output="numpy") as loader:
        rows = sum(len(batch.label) for batch in loader)
        assert rows == 41
        assert [bad.key for bad in loader.errors] == ["birch/003.jpg"]
        assert loader.errors[0].record == 21 + 10


def test_what_changes_the_state(train: feedline.Dataset) -> None:
    with feedline.mix([train, train], [1, 2]).loader(4, output="numpy") as loader:
        next(iter(loader))
        state = loader.state_dict()
    for other in (feedline.mix([train, train], [2, 1]), feedline.mix([train, train], [1, 2], samples=30)):
        with other.loader(4, output="numpy") as loader, pytest.raises(feedline.ConfigError, match="weights"):
            loader.load_state_dict(state)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (lambda a, b: {"datasets": []}, "at least one"),
        (lambda a, b: {"datasets": [a, "b"]}, "is a str, not a feedline.Dataset"),
        (lambda a, b: {"datasets": [a, b], "weights": [0, 0]}, "all weights are 0"),
        (lambda a, b: {"datasets": [a, b], "weights": []}, "weights is empty"),
        (lambda a, b: {"datasets": [a, b], "weights": [1]}, "the same number of weights"),
        (lambda a, b: {"datasets": [a, b], "weights": [1, -1]}, "not negative"),
        (lambda a, b: {"datasets": [a, b], "weights": [1, float("nan")]}, "finite"),
        (lambda a, b: {"datasets": [a, b], "weights": [1, float("inf")]}, "finite"),
        (lambda a, b: {"datasets": [a, b], "weights": [1, "1"]}, "number"),
        (
            lambda a, b: {"datasets": [a, b], "weights": [1, 1e-300], "until": "last"},
            "ratios of sizes to weights differ too much",
        ),
        (lambda a, b: {"datasets": [a, b], "until": "soon"}, "until"),
        (lambda a, b: {"datasets": [a, b], "until": "first", "samples": 5}, "not both"),
        (lambda a, b: {"datasets": [a, b], "samples": 0}, "samples"),
        (lambda a, b: {"datasets": [a, b], "samples": 2.5}, "samples"),
        (
            lambda a, b: {"datasets": [a, feedline.arrays(y=np.arange(3))]},
            r"dataset 1 .*lacks the field 'x', which dataset 0 .*has",
        ),
        (lambda a, b: {"datasets": [a, feedline.arrays(x=np.zeros(3))]}, r"'x' is array .* in dataset 0"),
        (lambda a, b: {"datasets": [feedline.mix([a, b]), a]}, "itself a mixture"),
    ],
)
def test_wrong_mixtures(arguments: Any, words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=words):
        feedline.mix(**arguments(numbers(5), numbers(6)))


def test_operations_belong_to_the_mixture(folder: Path) -> None:
    photos = feedline.open(folder)
    with pytest.raises(feedline.ConfigError, match="operations of the datasets differ"):
        feedline.mix([photos.resize((8, 8)), photos.resize((9, 9))])
    assert feedline.mix([photos, photos]).resize((8, 8))[0].image.shape == (3, 8, 8)


def test_wrong_windows(train: feedline.Dataset) -> None:
    for window in (0, -1, 1.5, "2"):
        with pytest.raises(feedline.ConfigError, match="shuffle_window"):
            train.loader(4, shuffle="shards", shuffle_window=window)
    with pytest.raises(feedline.ConfigError, match="shuffle"):
        train.loader(4, shuffle="shard")


def test_more_ranks_than_samples(train: feedline.Dataset) -> None:
    with pytest.raises(feedline.ConfigError, match="world_size=22 exceeds the 21 samples"):
        train.loader(1, rank=0, world_size=22)
