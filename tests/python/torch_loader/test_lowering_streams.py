# SPDX-License-Identifier: Apache-2.0
"""`datasets.IterableDataset` over Parquet: its own order, shards and states, with images that the engine decodes."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_in_torchvision
import torch
from lowered import assert_same, plan_of
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader
from feedline.torch_loader.native.encoded_columns import Function

hf = pytest.importorskip("datasets")
parquet = pytest.importorskip("pyarrow.parquet")

SHARDS, ROWS = 4, 7


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


def encoded(i: int, mode: str = "RGB") -> bytes:
    rng = np.random.default_rng(i)
    image = Image.fromarray(rng.integers(0, 256, (6, 5, 3)[: len(mode)] if mode == "RGB" else (6, 5), np.uint8))
    file, exif = io.BytesIO(), Image.Exif()
    if i % 5 == 1:
        exif[0x0112] = 6
    image.resize((50 - i % 3, 40 + i % 5)).save(file, "PNG" if i % 4 == 0 else "JPEG", exif=exif)
    return file.getvalue()


def write(folder: Path, image_of: Callable[[int], Any] = encoded, feature: Any = None) -> Path:
    features = hf.Features({"image": feature or hf.Image(), "label": hf.Value("int64"), "text": hf.Value("string")})
    for shard in range(SHARDS):
        numbers = range(ROWS * shard, ROWS * (shard + 1))
        files = [image_of(i) for i in numbers]
        rows = {
            "image": [None if file is None else {"bytes": file, "path": None} for file in files],
            "label": [i % 3 for i in numbers],
            "text": [f"row {i}" for i in numbers],
        }
        table = hf.Dataset.from_dict(rows, features=features).data.table
        parquet.write_table(table, folder / f"train-{shard:05}-of-{SHARDS:05}.parquet", row_group_size=3)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("parquet"))


def opened(folder: Path) -> Any:
    return hf.load_dataset("parquet", data_files=str(folder / "*.parquet"), split="train", streaming=True)


def chain_of(vision: Any, *more: Any) -> Any:
    t = vision.transforms
    return t.Compose([t.Resize(30), t.CenterCrop(24), t.ToTensor(), *more])


def one(chain: Any) -> Callable[[Any], Any]:
    def transforms(example):
        example["pixel_values"] = chain(example["image"].convert("RGB"))
        return example

    return transforms


def over_itself(chain: Any) -> Callable[[Any], Any]:
    def transforms(example):
        example["image"] = chain(example["image"])
        return example

    return transforms


def alone(chain: Any) -> Callable[[Any], Any]:
    return lambda example: {"x": chain(example["image"]), "y": example["label"]}


def of_batch(chain: Any) -> Callable[[Any], Any]:
    def transforms(batch):
        batch["pixel_values"] = torch.stack([chain(image.convert("RGB")) for image in batch["image"]])
        return batch

    return transforms


def in_place(chain: Any) -> Callable[[Any], Any]:
    def transforms(examples):
        images = [image.convert("RGB") for image in examples["image"]]
        examples["image"] = [chain(image) for image in images]
        return examples

    return transforms


def assert_same_as_torch(data: Any, workers: int = 0, plan: str = "prefix", epochs: int = 1, **options: Any) -> None:
    ours, theirs = (kind(data, num_workers=workers, **options) for kind in (DataLoader, TorchLoader))
    assert plan_of(ours) == plan, ours.explain()
    for epoch in range(epochs):
        found = []
        for loader in (ours, theirs):
            data.set_epoch(epoch)
            found.append(list(loader))
        assert len(found[0]) > 1
        assert_same(*found)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Counts the images that the engine has left to datasets' own code."""
    left: list[Any] = []
    whole = Function.__init__

    def begin(self: Function, function: Any, batched: bool, mode: Any, decode: Any) -> None:
        def counting(image: Any) -> Any:
            left.append(image)
            return decode(image)

        whole(self, function, batched, mode, counting)

    monkeypatch.setattr(Function, "__init__", begin)
    return left


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (one, {"remove_columns": ["image"]}),
        (over_itself, {}),
        (alone, {"remove_columns": ["image", "label", "text"]}),
        (of_batch, {"batched": True, "batch_size": 3, "remove_columns": ["image", "text"]}),
        (in_place, {"batched": True, "batch_size": 4}),
    ],
)
def test_functions_that_are_known(vision, folder, monkeypatch, function, options):
    left = counted(monkeypatch)
    data = opened(folder).map(function(chain_of(vision)), **options)
    assert_same_as_torch(data, batch_size=5)
    assert not left


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("shuffled", ["before", "behind"])
def test_order_and_shards_of_workers_are_datasets_own(vision, folder, workers, shuffled):
    data = opened(folder)
    if shuffled == "before":
        data = data.shuffle(seed=3, buffer_size=6)
    data = data.map(one(chain_of(vision)), remove_columns="image")
    if shuffled == "behind":
        data = data.shuffle(seed=3, buffer_size=6).with_format("torch")
    assert_same_as_torch(data, workers, batch_size=4, epochs=2)


def test_ranks_skips_and_other_functions(vision, folder):
    split = importlib.import_module("datasets.distributed").split_dataset_by_node
    data = opened(folder).skip(2).map(one(chain_of(vision))).remove_columns("image").filter(lambda row: row["label"])
    for rank in range(2):
        part = split(data.take(15), rank=rank, world_size=2)
        assert_same_as_torch(part, batch_size=2)


def test_states_are_datasets_own(vision, folder):
    data = opened(folder).map(one(chain_of(vision)), remove_columns="image")
    theirs, states = [], []
    for sample in TorchLoader(data, batch_size=None):
        theirs.append(sample)
        states.append(data.state_dict())
    ours = []
    for sample in DataLoader(data, batch_size=None):
        ours.append(sample)
        assert data.state_dict() == states[len(ours) - 1]
    assert_same(ours, theirs)
    data.load_state_dict(states[9])
    assert_same(list(DataLoader(data, batch_size=None)), theirs[10:])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loaders_state_resumes_in_the_middle(vision, folder, workers):
    data = opened(folder).map(one(chain_of(vision)), remove_columns="image")
    loader = DataLoader(data, batch_size=3, num_workers=workers)
    batches, state = [], None
    for batch in loader:
        batches.append(batch)
        if len(batches) == 3:
            state = loader.state_dict()
    again = DataLoader(data, batch_size=3, num_workers=workers)
    again.load_state_dict(state)
    assert_same(list(again), batches[3:])


def test_images_in_other_modes_and_others_are_left_to_datasets(vision, tmp_path, monkeypatch):
    def image_of(i: int) -> bytes:
        if i % 3 == 0:
            return encoded(i, "L")
        file = io.BytesIO()
        Image.open(io.BytesIO(encoded(i))).save(file, "BMP" if i % 3 == 1 else "PNG")
        return file.getvalue()

    left = counted(monkeypatch)
    data = opened(write(tmp_path, image_of)).map(over_itself(chain_of(vision)))
    assert_same_as_torch(data, batch_size=None)
    assert len(left) == sum(i % 3 == 1 for i in range(SHARDS * ROWS))
    assert_same_as_torch(opened(tmp_path).map(one(chain_of(vision)), remove_columns="image"), batch_size=None)


@pytest.mark.parametrize("bad", [b"no image", None, encoded(3)[:200]])
def test_bad_images_are_datasets_errors(vision, tmp_path, bad):
    data = opened(write(tmp_path, lambda i: bad if i == 9 else encoded(i)))
    data = data.map(one(chain_of(vision)), remove_columns="image")
    errors = []
    for kind in (DataLoader, TorchLoader):
        got, loader = [], iter(kind(data, batch_size=None))
        with pytest.raises(Exception) as raised:  # any exception of datasets
            got.extend(loader)
        errors.append((type(raised.value), str(raised.value).partition(" at 0x")[0]))
    assert errors[0] == errors[1]


def not_known(example):
    return {"x": np.asarray(example["image"]).sum()}


def test_what_is_not_known_is_refused_by_name(vision, folder):
    chain = chain_of(vision)
    data = opened(folder)
    gray = data.cast_column("image", hf.Image(mode="CMYK"))
    plain = vision.transforms.Compose([vision.transforms.Lambda(np.asarray)])
    refused = {
        "not_known is not a function": data.map(not_known, remove_columns=["image", "text"]),
        'a sample contains "image"': data.map(one(chain)),
        "map() has with_indices": data.map(lambda row, i: row, with_indices=True),
        "the function of map() receives tables or tensors": data.with_format("torch").map(
            one(chain), remove_columns="image"
        ),
        "no map() of a dataset with an Image feature": data.remove_columns("image"),
        "the dataset's images have mode CMYK": gray.map(one(chain), remove_columns="image"),
        "Lambda": data.map(over_itself(plain)),
    }
    for words, dataset in refused.items():
        loader = DataLoader(dataset, batch_size=None)
        assert plan_of(loader) == "python", words
        assert words in str(loader.explain()), loader.explain()


def test_an_altered_dataset_stays_in_python(vision, folder):
    class Mine(hf.IterableDataset):
        pass

    data = opened(folder).map(one(chain_of(vision)), remove_columns="image")
    loader = DataLoader(Mine(data._ex_iterable), batch_size=None)
    assert plan_of(loader) == "python"
    assert "an IterableDataset produces its samples itself" in str(loader.explain())


def test_random_transforms_draw_by_torchs_numbers(vision, folder):
    t = vision.transforms
    data = opened(folder).map(one(t.Compose([t.RandomResizedCrop(20), t.ToTensor()])), remove_columns="image")
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append([sample["pixel_values"] for sample in DataLoader(data, batch_size=None)])
    assert_same(drawn[0], drawn[1])
    assert any((a != b).any() for a, b in zip(drawn[0], drawn[2], strict=True))
