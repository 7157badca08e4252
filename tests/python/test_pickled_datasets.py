# SPDX-License-Identifier: Apache-2.0
"""Datasets in other processes: pickle stores the calls that made them."""

from __future__ import annotations

import copy
import multiprocessing.reduction
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import feedline


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for k in range(8):
        folder = tmp_path / "photos" / "ab"[k % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((12, 12, 3), 20 * k, np.uint8)).save(folder / f"{k}.png")
    return tmp_path / "photos"


def negative(image: np.ndarray) -> np.ndarray:
    return 255 - image


CHAIN = feedline.chain().random_crop(4)
MADE: dict[str, Callable[[feedline.Dataset], feedline.Dataset]] = {
    "operations": lambda d: d.random_horizontal_flip().normalize([0.5] * 3, [0.5] * 3),
    "views": lambda d: d.views(a=CHAIN, b=(CHAIN, 2)),
    "a list of views": lambda d: d.views([CHAIN, CHAIN]),
    "views as an object": lambda d: d.views(feedline.views(a=CHAIN)),
    "part of a split": lambda d: d.split(0.5, seed=3)[1],
    "part of a split by class": lambda d: d.split(0.5, by_class=True)[0].random_crop(3),
    "subset of an iterator": lambda d: d.subset(index for index in (3, 1, 5)),
    "subset of a function": lambda d: d.subset(keys=lambda keys: keys[::-1]),
    "slice": lambda d: d[2:7:2],
    "cache": lambda d: d.cache().random_crop(4),
    "map": lambda d: d.map(negative, "image"),
    "mixture": lambda d: feedline.mix([d, d.subset([1, 2])], weights=[1, 2]),
    "five crops": lambda d: d.five_crop(4),
    "random chains": lambda d: d.random_apply(feedline.chain().grayscale(3)).random_choice([CHAIN, CHAIN]),
}


def assert_same(found: feedline.Dataset, wanted: feedline.Dataset, output: str = "numpy") -> None:
    assert found is not wanted
    assert found.fingerprint == wanted.fingerprint
    assert found.operations == wanted.operations
    for index in range(len(wanted)):
        ours, theirs = found.sample(index, epoch=1, output=output), wanted.sample(index, epoch=1, output=output)
        for one, other in zip(ours, theirs, strict=True):
            assert type(one) is type(other) and getattr(one, "dtype", None) == getattr(other, "dtype", None)
            assert np.array_equal(np.asarray(one, np.float64), np.asarray(other, np.float64))


@pytest.mark.parametrize("name", MADE)
def test_a_pickled_dataset_has_the_same_samples(name: str, photos: Path) -> None:
    made = MADE[name](feedline.open(photos).resize((8, 8)))
    assert_same(pickle.loads(pickle.dumps(made)), made)


def test_sources_of_arrays_and_tokens_pickle_by_value_and_by_path(tmp_path: Path) -> None:
    ragged = feedline.ragged(np.arange(12), lengths=[1, 3] * 3)
    arrays = feedline.arrays(x=np.arange(12.0).reshape(6, 2), y=ragged)
    assert_same(pickle.loads(pickle.dumps(arrays.split(0.5)[0])), arrays.split(0.5)[0])
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    tokens = feedline.tokens(tmp_path / "tokens.bin", window=5, dtype="uint16")
    assert_same(pickle.loads(pickle.dumps(tokens)), tokens)


def test_lists_that_change_after_the_call_do_not_change_the_pickle(photos: Path) -> None:
    indices = [0, 1]
    part = feedline.open(photos).resize((8, 8)).subset(indices)
    indices.append(5)
    assert len(pickle.loads(pickle.dumps(part))) == 2


def test_copies_are_the_dataset_itself(photos: Path) -> None:
    dataset = feedline.open(photos)
    assert copy.copy(dataset) is dataset
    assert copy.deepcopy(dataset) is dataset


def test_a_source_that_has_changed_is_an_error(photos: Path) -> None:
    data = pickle.dumps(feedline.open(photos))
    next(photos.rglob("*.png")).unlink()
    with pytest.raises(feedline.DataError, match="the source has changed"):
        pickle.loads(data)


def test_chains_pickle() -> None:
    assert repr(pickle.loads(pickle.dumps(CHAIN))) == repr(CHAIN)


def test_the_signature_of_recorded_methods_is_their_own() -> None:
    import inspect

    assert list(inspect.signature(feedline.Dataset.resize).parameters)[:2] == ["self", "size"]


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
@pytest.mark.parametrize("loader", ["torch", "feedline"])
def test_workers_that_are_not_forked(context: str, loader: str, photos: Path) -> None:
    torch = pytest.importorskip("torch")
    dataset = feedline.open(photos).resize((8, 8))
    made: Any = torch.utils.data.DataLoader if loader == "torch" else feedline.DataLoader
    more = {} if loader == "torch" else {"lower": "never"}
    batches = made(dataset, batch_size=3, num_workers=1, multiprocessing_context=context, **more)
    assert [int(label) for _, labels in batches for label in labels] == [int(one.label) for one in dataset]


def test_tensors_stay_where_they_are() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(12.0).reshape(6, 2).to(torch.bfloat16)
    dataset = feedline.arrays(x=tensor, z=feedline.ragged(torch.arange(12), lengths=[2] * 6))
    import torch.multiprocessing  # whose pickler moves tensors to shared memory

    made = pickle.loads(multiprocessing.reduction.ForkingPickler.dumps(dataset))
    assert_same(made, dataset)
    assert made[3].x.tolist() == [6.0, 7.0]
    assert made.sample(3, output="torch").x.dtype == torch.bfloat16
    assert dataset[3].x.tolist() == [6.0, 7.0]  # torch's pickling would have moved it to shared memory
    assert not tensor.is_shared()
