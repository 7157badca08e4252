# SPDX-License-Identifier: Apache-2.0
"""The same seed gives the same bytes, whatever the threads, the queue or the storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Options, training

import feedline


def epochs(dataset: feedline.Dataset, count: int = 2, **options: Any) -> list[list[tuple[bytes, ...]]]:
    """The bytes of every field of every batch, per epoch."""
    with dataset.loader(**{"batch_size": 4, "shuffle": True, "output": "numpy", **options}) as loader:
        return [[tuple(field.tobytes() for field in batch) for batch in loader] for _ in range(count)]


@pytest.fixture(scope="module")
def reference(folder: Path) -> list[list[tuple[bytes, ...]]]:
    return epochs(training(feedline.open(folder)), seed=17, num_workers=1)


@pytest.mark.parametrize("threads", [1, 2, 3, 8, "auto"])
def test_any_number_of_threads(train: feedline.Dataset, reference: list[Any], threads: int | str) -> None:
    for _ in range(3):
        assert epochs(train, seed=17, num_workers=threads) == reference


def test_hostile_configurations(train: feedline.Dataset, reference: list[Any], config: Options) -> None:
    assert epochs(train, seed=17, **config(train, 4)) == reference


@pytest.mark.parametrize("threads", [1, 8])
def test_folder_and_tar_of_the_same_files(tars: list[Path], reference: list[Any], threads: int) -> None:
    assert epochs(training(feedline.open(tars)), seed=17, num_workers=threads) == reference


def test_brace_list_and_joined_shards_are_the_list(tars: list[Path]) -> None:
    as_list = feedline.open(tars)
    braces = feedline.open(str(tars[0].parent / "{000..002}.tar"))
    joined = feedline.open("::".join(str(tar) for tar in tars))
    assert [len(d) for d in (as_list, braces, joined)] == [21, 21, 21]
    keys = [[d.key(i) for i in range(21)] for d in (as_list, braces, joined)]
    assert keys[0] == keys[1] == keys[2]


def test_another_seed_or_epoch_is_another_order_with_other_crops(train: feedline.Dataset, reference: list[Any]) -> None:
    first, second = reference
    other = epochs(train, count=1, seed=18)[0]
    assert len({repr([batch[1] for batch in epoch]) for epoch in (first, second, other)}) == 3
    for a, b in ((0, 1), (0, 0)):
        seed = 18 if a == b else 17
        assert train.draw(3, seed=17, epoch=a) != train.draw(3, seed=seed, epoch=b)


def test_epochs_are_a_function_of_seed_and_number(train: feedline.Dataset, reference: list[Any]) -> None:
    with train.loader(4, shuffle=True, seed=17, output="numpy") as loader:
        loader.set_epoch(1)
        again = [tuple(field.tobytes() for field in batch) for batch in loader]
    assert again == reference[1]


def test_completion_order_gives_the_same_set(train: feedline.Dataset, reference: list[Any]) -> None:
    for threads in (1, 3):
        unordered = epochs(train, seed=17, in_order=False, num_workers=threads)
        for ours, theirs in zip(unordered, reference, strict=True):
            assert sorted(ours) == sorted(theirs)


def test_a_sample_is_a_row_of_the_batch(train: feedline.Dataset) -> None:
    """ds.sample(i, seed, epoch) is what the loader gives, and ds[i] is epoch 0 of seed 0."""
    with train.loader(4, shuffle=True, seed=5, output="numpy") as loader:
        for epoch in range(2):
            for batch in loader:
                for row, index in enumerate(loader.last_samples):
                    image, label = train.sample(index, seed=5, epoch=epoch)
                    np.testing.assert_array_equal(batch.image[row], image)
                    assert batch.label[row] == label
    np.testing.assert_array_equal(train[3][0], train.sample(3, seed=0, epoch=0)[0])


def test_without_shuffle_the_order_is_the_datasets(train: feedline.Dataset, config: Options) -> None:
    with train.loader(4, output="numpy", **config(train, 4)) as loader:
        order: list[int] = []
        for _ in loader:
            order += loader.last_samples
    assert order == list(range(21))


def test_drop_last_and_lengths(train: feedline.Dataset) -> None:
    for size, drop, lengths in ((4, False, [4] * 5 + [1]), (4, True, [4] * 5), (21, True, [21]), (7, False, [7] * 3)):
        with train.loader(size, drop_last=drop, output="numpy") as loader:
            assert len(loader) == len(lengths)
            assert [len(batch.label) for batch in loader] == lengths


def test_bfloat16_is_float32_rounded(train: feedline.Dataset) -> None:
    torch = pytest.importorskip("torch")
    with train.loader(4) as full, train.loader(4, dtype=torch.bfloat16) as half:
        for ours, theirs in zip(half, full, strict=True):
            assert ours.image.dtype == torch.bfloat16 and torch.equal(ours.image, theirs.image.to(torch.bfloat16))
    with pytest.raises(feedline.ConfigError, match="only a GPU can mix"):
        train.loader(4, dtype="bfloat16", mixup=0.2)
    with pytest.raises(feedline.ConfigError, match="random_erasing after normalize"):
        train.random_erasing().loader(4, dtype="bfloat16")


def test_layout_and_dtype(train: feedline.Dataset, folder: Path) -> None:
    plain = feedline.open(folder).random_resized_crop(16)

    def first(dataset: feedline.Dataset, **options: Any) -> np.ndarray:
        with dataset.loader(4, output="numpy", **options) as loader:
            image: np.ndarray = next(iter(loader)).image
            return image

    nchw, nhwc = first(plain), first(plain, layout="NHWC")
    assert nchw.shape == (4, 3, 16, 16)
    assert nchw.dtype == np.uint8
    np.testing.assert_array_equal(nchw.transpose(0, 2, 3, 1), nhwc)
    full, half = first(train), first(train, dtype="float16")
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half, full.astype(np.float16))
    with pytest.raises(feedline.ConfigError, match="NumPy has no bfloat16"):
        first(train, dtype="bfloat16")
    scaled = first(plain, dtype=np.float32)
    np.testing.assert_array_max_ulp(scaled, nchw.astype(np.float32) / np.float32(255), maxulp=1)
