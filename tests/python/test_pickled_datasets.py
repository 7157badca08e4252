# SPDX-License-Identifier: Apache-2.0
"""Datasets in other processes: a pickle contains the calls that created them."""

from __future__ import annotations

import copy
import functools
import io
import multiprocessing.reduction
import operator
import pickle
import types
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


class _Negative:
    """An object of a class defined in a module."""

    def __call__(self, image: np.ndarray) -> np.ndarray:
        return 255 - image

    def method(self, image: np.ndarray) -> np.ndarray:
        return 255 - image


@pytest.mark.parametrize("fn", [_Negative(), _Negative().method, functools.partial(np.subtract, 255), np.negative])
def test_callables_of_modules_pickle(fn: Any, photos: Path) -> None:
    made = feedline.open(photos).resize((8, 8)).map(fn, "image")
    assert_same(pickle.loads(pickle.dumps(made)), made)


def _local_object() -> Any:
    class Local:
        def __call__(self, image: np.ndarray) -> np.ndarray:
            return image

    return Local()


def _nested() -> Any:
    def inner(image: np.ndarray) -> np.ndarray:
        return image

    return inner


NOT_IN_A_MODULE = {
    "a lambda": lambda image: image,
    "a lambda (": functools.partial(lambda image, more: image, more=1),
    "the nested function inner": _nested(),
    "an object of the local class _local_object.<locals>.Local": _local_object(),
    "the local class _local_object": _local_object().__call__,
}


@pytest.mark.parametrize("kind", NOT_IN_A_MODULE)
def test_a_function_that_is_not_in_a_module_is_named(kind: str, photos: Path) -> None:
    """With its operation and fields; also in a part of the dataset and in the data sent to a worker."""
    made = feedline.open(photos).resize((8, 8)).map(NOT_IN_A_MODULE[kind], "image")
    for dumps in (pickle.dumps, multiprocessing.reduction.ForkingPickler.dumps):
        with pytest.raises(feedline.ConfigError) as raised:
            dumps({"dataset": made.split(0.5)[0]})
        message = str(raised.value)
        assert "map(fields='image')" in message and kind in message and "at module level" in message


def test_a_lambda_for_all_fields_is_named_with_its_file(photos: Path) -> None:
    made = feedline.open(photos).resize((8, 8)).map(lambda sample: sample)[1:5]
    with pytest.raises(feedline.ConfigError, match=r"map\(\) was given a lambda \(.*_datasets.py, line \d+\)"):
        pickle.dumps(made)


def test_workers_that_are_not_forked_name_a_lambda(photos: Path) -> None:
    torch = pytest.importorskip("torch")
    dataset = feedline.open(photos).resize((8, 8)).map(lambda image: image, "image")
    for made, more in ((torch.utils.data.DataLoader, {}), (feedline.DataLoader, {"lower": "never"})):
        loader = made(dataset, batch_size=3, num_workers=1, multiprocessing_context="spawn", **more)
        with pytest.raises(feedline.ConfigError, match=r"map\(fields='image'\)"):
            next(iter(loader))


def test_cloudpickle_stores_a_lambda(photos: Path) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    for kind in NOT_IN_A_MODULE:
        made = feedline.open(photos).resize((8, 8)).map(NOT_IN_A_MODULE[kind], "image")
        assert_same(pickle.loads(cloudpickle.dumps([made])[:])[0], made)


def test_a_pickler_that_stores_functions_itself_is_left_alone(photos: Path) -> None:
    class ByValue(pickle.Pickler):
        def reducer_override(self, one: Any) -> Any:
            if isinstance(one, types.FunctionType) and one.__name__ == "<lambda>":
                return operator.attrgetter, ("real",)
            return NotImplemented

        def store(self, one: Any) -> None:
            self.dump(one)

    made = feedline.open(photos).resize((8, 8)).map(lambda image: image, "image")
    stream = io.BytesIO()
    ByValue(stream).store(made)
    assert pickle.loads(stream.getvalue()).operations


def test_the_signature_of_recorded_methods_is_their_own() -> None:
    import inspect

    assert list(inspect.signature(feedline.Dataset.resize).parameters)[:2] == ["self", "size"]


@pytest.mark.parametrize(
    ("loader", "context"),
    [
        ("torch", "spawn"),
        ("feedline", "spawn"),
        ("feedline", "forkserver"),
        pytest.param("torch", "forkserver", marks=pytest.mark.nightly),
    ],
)
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
