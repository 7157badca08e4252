# SPDX-License-Identifier: Apache-2.0
"""Batches are views of the engine's memory, without a copy, and belong to the code that holds them."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest
from conftest import Options

import feedline


def test_holding_every_batch_of_an_epoch(train: feedline.Dataset, config: Options) -> None:
    with train.loader(4, shuffle=True, output="numpy", **config(train, 4)) as loader:
        held, copies = [], []
        for batch in loader:
            held.append(batch)
            copies.append([field.copy() for field in batch])
        for _ in range(2):  # two more epochs may reuse only memory that nothing holds
            for _ in loader:
                pass
    for batch, copy in zip(held, copies, strict=True):
        for ours, before in zip(batch, copy, strict=True):
            np.testing.assert_array_equal(ours, before)
    addresses = {field.__array_interface__["data"][0] for batch in held for field in batch}
    assert len(addresses) == 2 * len(held)


def test_a_batch_outlives_its_loader(train: feedline.Dataset) -> None:
    loader = train.loader(4, output="numpy")
    batch = next(iter(loader))
    row, before = batch.image[2], batch.image[2].copy()
    del batch, loader
    gc.collect()
    np.testing.assert_array_equal(row, before)


def test_arrays_are_writable_and_contiguous_views(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        iterator = iter(loader)
        batch = next(iterator)
        assert not batch.image.flags.owndata
        assert batch.image.flags.writeable
        assert batch.image.flags.c_contiguous
        batch.image[:] = 7
        later = next(iterator)
        assert (batch.image == 7).all()
        assert not np.shares_memory(batch.image, later.image)


def test_memory_is_given_back(train: feedline.Dataset) -> None:
    """If each batch is dropped, as in a training loop, the engine needs only its few slots."""
    addresses = set()
    with train.loader(4, output="numpy", num_workers=1) as loader:
        for _ in range(10):
            for batch in loader:
                addresses.add(batch.image.__array_interface__["data"][0])
                assert loader.stats()["held_bytes_peak"] <= loader.stats()["budget_bytes"]
    assert len(addresses) < 30  # of 60 batches


def test_a_batch_is_a_named_tuple_that_pickles(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        iterator = iter(loader)
        batch, second = next(iterator), next(iterator)
    image, label = batch
    assert image is batch.image
    assert label is batch.label
    assert type(batch) is type(second)
    assert type(batch)._fields == ("image", "label")
    again = pickle.loads(pickle.dumps(batch))
    assert type(again) is type(batch)
    np.testing.assert_array_equal(again.image, batch.image)


def test_fields_that_are_no_python_names(tmp_path: object, folder: str) -> None:
    from feedline.loader import batches

    assert batches.attribute_names(["image", "class", "seg.png", "1.x", "jpg;png", "seg_png"]) == (
        "image", "class_", "seg_png", "x", "jpg_png", "seg_png_",
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_torch_tensors_share_the_engines_memory(folder: str, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    dataset = feedline.open(folder).random_resized_crop(16)
    with dataset.loader(4, dtype=dtype) as loader, dataset.loader(4, dtype=dtype, output="numpy") as plain:
        engines = loader._engine
        engines.start_epoch()
        batch = engines.next()
        tensors, arrays = batch.to_torch(), batch.to_numpy()
        for tensor, array in zip(tensors, arrays, strict=True):
            assert tensor.data_ptr() == array.__array_interface__["data"][0]
            assert tensor.is_contiguous()
        assert tensors[0].dtype is getattr(torch, dtype)
        assert tensors[1].dtype is torch.int64
        tensors[0][0, 0, 0, 0] = 1
        assert arrays[0][0, 0, 0, 0] == 1
        loader.set_epoch(0)
        for ours, theirs in zip(loader, plain, strict=True):
            np.testing.assert_array_equal(ours.image.numpy(), theirs.image)
            np.testing.assert_array_equal(ours.label.numpy(), theirs.label)


def test_holding_every_tensor_of_an_epoch(train: feedline.Dataset, config: Options) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    with train.loader(4, shuffle=True, **config(train, 4)) as loader:
        held = [(batch.image, batch.image.clone()) for batch in loader]
        for _ in loader:
            pass
    assert len({tensor.data_ptr() for tensor, _ in held}) == len(held)
    for tensor, copy in held:
        assert tensor.equal(copy)


def test_tensors_work_in_a_training_step_and_free_themselves_in_threads(train: feedline.Dataset) -> None:
    """Autograd frees saved tensors in threads that do not hold the GIL."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    model = torch.nn.Linear(3 * 32 * 32, 3)
    with train.loader(7) as loader:
        for batch in loader:
            loss = torch.nn.functional.cross_entropy(model(batch.image.flatten(1)), batch.label)
            del batch
            loss.backward()
    assert torch.isfinite(loss)


def test_an_abandoned_loader_goes_away(train: feedline.Dataset) -> None:
    loader = train.loader(4, output="numpy")
    next(iter(loader))
    gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None
