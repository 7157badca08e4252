# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's datasets: images of Arrow tables with known functions, and columns of numbers, as in torch's
loader.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_in_torchvision
import torch
from lowered import assert_same, plan_of, random_states
from PIL import Image
from torch.utils.data import ConcatDataset, Subset
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader
from feedline.torch_loader.native.arrow_prefix import ArrowPrefix

hf = pytest.importorskip("datasets")

COUNT = 23


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


def encoded(i: int, kind: str = "JPEG", mode: str = "RGB", turned: bool = False) -> bytes:
    rng = np.random.default_rng(i)
    shape = (40 + i % 5, 50 - i % 3, 3)[: 3 if mode == "RGB" else 2]
    image = Image.fromarray(rng.integers(0, 256, (6, 5, 3)[: len(shape)], np.uint8)).resize(shape[1::-1])
    file = io.BytesIO()
    exif = Image.Exif()
    if turned:
        exif[0x0112] = 6
    image.save(file, kind, **({"exif": exif} if turned else {}))
    return file.getvalue()


def table_of(files: list[Any], feature: Any = None, **columns: Any) -> Any:
    """A table of image files, bytes or paths, with a label, a text and a list."""
    rows = {
        "image": [
            {"bytes": f, "path": None} if isinstance(f, bytes) else {"bytes": None, "path": str(f)} for f in files
        ],
        "label": [i % 3 for i in range(len(files))],
        "text": [f"row {i}" for i in range(len(files))],
        **columns,
    }
    features = {"image": feature or hf.Image(), "label": hf.ClassLabel(names=["a", "b", "c"])}
    table = hf.Dataset.from_dict({**rows, "image": [None] * len(files)} | {"image": rows["image"]})
    return table.cast(hf.Features({**table.features, **features}))


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Like load_dataset(): mapped files, in many chunks."""
    files: list[Any] = [encoded(i, "PNG" if i % 4 == 0 else "JPEG", turned=i % 5 == 1) for i in range(COUNT)]
    table_of(files).save_to_disk(str(tmp_path / "saved"), num_shards=3)
    return hf.load_from_disk(str(tmp_path / "saved"))


def chain_of(vision: Any, random: bool = False) -> Any:
    t = vision.transforms
    steps = [t.Resize(30), t.CenterCrop(24), t.ToTensor(), t.Normalize((0.5, 0.4, 0.3), (0.25, 0.2, 0.3))]
    return t.Compose([t.RandomHorizontalFlip(), *steps] if random else steps)


def in_place(chain: Any) -> Callable[[Any], Any]:
    """As in Hugging Face's documentation."""

    def transforms(examples):
        examples["pixel_values"] = [chain(img.convert("RGB")) for img in examples["image"]]
        del examples["image"]
        return examples

    return transforms


def over_itself(chain: Any) -> Callable[[Any], Any]:
    def transforms(batch):
        batch["image"] = [chain(x) for x in batch["image"]]
        return batch

    return transforms


def popped(chain: Any) -> Callable[[Any], Any]:
    def transforms(batch):
        batch["pixels"] = torch.stack([chain(x.convert("RGB")) for x in batch["image"]])
        batch.pop("image")
        return batch

    return transforms


def in_two_steps(chain: Any) -> Callable[[Any], Any]:
    """As in diffusers' unconditional training."""

    def transform_images(examples):
        images = [image.convert("RGB") for image in examples["image"]]
        images = [chain(image) for image in images]
        return {"input": images}

    return transform_images


def with_labels(chain: Any) -> Callable[[Any], Any]:
    def transforms(batch):
        return {"labels": batch["label"], "pixel_values": [chain(x.convert("RGB")) for x in batch["image"]]}

    return transforms


FUNCTIONS = [in_place, over_itself, popped, in_two_steps, with_labels]


def collate_fn(examples):
    """As in Hugging Face's documentation."""
    pixel_values = torch.stack([example["pixel_values"] for example in examples])
    labels = torch.tensor([example["label"] for example in examples])
    return {"pixel_values": pixel_values, "labels": labels}


def collate_inline(rows):
    return torch.stack([row["pixel_values"] for row in rows]), torch.tensor([row["label"] for row in rows])


def told_dataset(rows: Any) -> str:
    """Worker information, if users request it."""
    info = torch.utils.data.get_worker_info()
    return "" if info is None else type(info.dataset).__name__


def assert_same_batches(dataset: Any, plan: str, workers: int = 0, misses: int | None = 0, **options: Any) -> Any:
    """Returns the batches of Feedline's loader, planned as `plan`, which equal torch's in this process."""
    torch.manual_seed(5)
    loader = DataLoader(dataset, num_workers=workers, **options)
    assert plan_of(loader) == plan, loader.explain()
    found = [list(loader) for _ in range(2)]
    after = random_states()
    if plan == "images" and misses is not None:
        assert loader._progress.native_rows > 0
        assert loader._progress.native_misses == misses
    torch.manual_seed(5)
    theirs = TorchLoader(dataset, **options)
    assert_same(found, [list(theirs) for _ in range(2)])
    assert after == random_states()
    return found[0]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("workers", [0, 2])
def test_known_functions_give_torchs_batches(table: Any, vision: Any, function: Any, workers: int) -> None:
    chain = chain_of(vision)
    dataset = table.with_transform(function(chain))
    assert_same_batches(dataset, "images", workers, batch_size=4, shuffle=True)
    shuffled = table.shuffle(seed=1).select(range(3, 19)).with_transform(function(chain))  # rows through indices
    assert_same_batches(shuffled, "images", workers, batch_size=5, drop_last=True)


def test_collate_functions_of_the_documentation(table: Any, vision: Any) -> None:
    def kept(batch):
        batch["pixel_values"] = [chain(image.convert("RGB")) for image in batch["image"]]
        return batch

    chain = chain_of(vision)
    for collate in (collate_fn, collate_inline):
        dataset = table.with_transform(in_place(chain))
        assert_same_batches(dataset, "images", 2, batch_size=4, collate_fn=collate)
    loader = DataLoader(table.with_transform(kept), 4, collate_fn=collate_fn)
    assert 'contains "image", a PIL image' in str(loader.explain())


def test_what_is_not_known_of_a_chain_runs_in_workers(table: Any, vision: Any) -> None:
    t = vision.transforms
    chain = t.Compose([t.Resize(30), t.CenterCrop(24), t.Lambda(lambda image: image), t.ToTensor()])
    dataset = table.with_transform(in_place(chain))
    assert_same_batches(dataset, "prefix", 0, batch_size=4, shuffle=True)
    assert_same_batches(dataset, "prefix", 2, batch_size=4)
    whole = table.with_transform(in_place(chain_of(vision)))
    assert_same_batches(whole, "prefix", 2, batch_size=4, collate_fn=list)
    assert pickle.loads(pickle.dumps(ArrowPrefix(table)))[3]["label"] == 0
    told = DataLoader(dataset, 4, num_workers=1, collate_fn=told_dataset)
    assert plan_of(told) == "prefix" and set(told) == {type(table).__name__}


def test_bad_rows_and_other_modes_are_the_datasets(tmp_path: Path, vision: Any) -> None:
    Image.fromarray(np.full((30, 40, 3), 7, np.uint8)).save(tmp_path / "by_path.png")
    files: list[Any] = [encoded(i) for i in range(12)]
    files[3] = encoded(3, mode="L")
    files[5] = tmp_path / "by_path.png"
    table = table_of(files)
    t = vision.transforms
    of_rgb = t.Compose([t.Resize(30), t.CenterCrop(24), t.Grayscale(), t.ToTensor()])  # takes both modes
    assert_same_batches(table.with_transform(over_itself(of_rgb)), "images", misses=2 * 2, batch_size=4)
    assert_same_batches(table.with_transform(in_place(of_rgb)), "images", batch_size=4)  # by path natively
    files[8] = b"no image"
    broken = table_of(files).with_transform(in_place(of_rgb))
    ours, theirs = (kind(broken, 4) for kind in (DataLoader, TorchLoader))
    for loader in (ours, theirs):
        batches = iter(loader)
        next(batches), next(batches)
        with pytest.raises(Exception, match="cannot identify image file"):
            next(batches)
    skipping = DataLoader(broken, 4, on_error="skip")
    assert [len(batch["label"]) for batch in skipping] == [4, 4, 3]
    assert len(skipping.errors) == 1


def test_grey_images_stay_grey(vision: Any) -> None:
    t = vision.transforms
    table = table_of([encoded(i, "PNG", "L") for i in range(9)])
    chain = t.Compose([t.Resize(30), t.CenterCrop(24), t.ToTensor()])
    found = assert_same_batches(table.with_transform(over_itself(chain)), "images", batch_size=3)
    assert found[0]["image"].shape == (3, 1, 24, 24)
    colourful = table_of([encoded(i, "PNG", "L") for i in range(9)], hf.Image(mode="RGB"))
    found = assert_same_batches(colourful.with_transform(over_itself(chain)), "images", batch_size=3)
    assert found[0]["image"].shape == (3, 3, 24, 24)


def test_subsets_odd_rows_and_another_transform(table: Any, vision: Any) -> None:
    dataset = table.with_transform(in_place(chain_of(vision)))
    assert_same_batches(Subset(dataset, [3, 3, 20, 0]), "images", batch_size=2)
    assert_same_batches(Subset(dataset, [3, -1]), "images", misses=None, batch_size=2)
    with pytest.raises(IndexError):
        list(DataLoader(Subset(dataset, [0, COUNT]), 2))
    loader = DataLoader(dataset, 4)
    first = list(loader)
    dataset.set_transform(with_labels(chain_of(vision)))
    assert set(next(iter(loader))) == {"labels", "pixel_values"}
    assert set(first[0]) == {"label", "text", "pixel_values"}


def test_random_transforms_are_redrawn_and_the_same_by_seed(table: Any, vision: Any) -> None:
    dataset = table.with_transform(in_place(chain_of(vision, random=True)))
    first, again = (DataLoader(dataset, 8, seed=1) for _ in range(2))
    epochs = [torch.cat([batch["pixel_values"] for batch in loader]) for loader in (first, first, again)]
    assert torch.equal(epochs[0], epochs[2])
    assert not torch.equal(epochs[0], epochs[1])


def test_what_is_not_known_reports_why(table: Any, vision: Any) -> None:
    chain = chain_of(vision)

    def twice(batch):
        batch["pixels"] = [chain(chain(image)) for image in batch["image"]]
        return batch

    def of_text(batch):
        batch["pixels"] = [chain(image) for image in batch["text"]]
        return batch

    def another(batch):
        batch["pixels"] = [chain(image) for image in batch["image"]]
        del batch["text"]
        return batch

    cases = {
        "another is not a function that the engine recognises": table.with_transform(another),
        "twice is not a function that the engine recognises": table.with_transform(twice),
        "is not an Image feature with decoding enabled": table.with_transform(of_text),
        "output_all_columns": table.with_format("custom", transform=in_place(chain), output_all_columns=True),
        "the dataset's format is Python, not torch": table,
        "the dataset's format is numpy": table.with_format("numpy"),
        'the column "image" is struct': table.with_format("torch"),
        "the dataset's images have mode CMYK": table.cast_column("image", hf.Image(mode="CMYK")).with_transform(
            over_itself(chain)
        ),
        "not an Image feature with decoding": table.cast_column("image", hf.Image(decode=False)).with_transform(
            in_place(chain)
        ),
    }
    for why, dataset in cases.items():
        loader = DataLoader(dataset, 4)
        assert plan_of(loader) == "python" and why in str(loader.explain()), (why, loader.explain())


# ---- columns of numbers ----


@pytest.fixture
def columns(tmp_path: Path) -> Any:
    rng = np.random.default_rng(0)
    rows = {
        "input_ids": rng.integers(0, 30000, (COUNT, 7)).tolist(),
        "label": rng.integers(0, 9, COUNT).tolist(),
        "score": rng.normal(size=COUNT).tolist(),
        "text": ["x"] * COUNT,
        "odd": [list(range(i % 3)) for i in range(COUNT)],
        "flag": [True] * COUNT,
    }
    features = hf.Features(
        input_ids=hf.List(hf.Value("int32")),
        label=hf.ClassLabel(num_classes=9),
        score=hf.Value("float64"),
        text=hf.Value("string"),
        odd=hf.List(hf.Value("int64")),
        flag=hf.Value("bool"),
    )
    hf.Dataset.from_dict(rows, features).save_to_disk(str(tmp_path / "columns"), num_shards=4)
    return hf.load_from_disk(str(tmp_path / "columns"))


@pytest.mark.parametrize("workers", [0, 2])
def test_columns_of_numbers_are_gathered(columns: Any, workers: int) -> None:
    numbers = columns.with_format("torch", columns=["score", "input_ids", "label"])
    assert_same_batches(numbers, "arrays", workers, batch_size=4, shuffle=True)
    chosen = columns.shuffle(seed=3).select(range(2, 20)).with_format("torch", columns=["input_ids"])
    assert_same_batches(chosen, "arrays", workers, batch_size=5, drop_last=True)
    assert_same_batches(Subset(numbers, [3, 3, 0, 22]), "arrays", workers, batch_size=3)
    assert_same_batches(ConcatDataset([numbers, numbers]), "arrays", workers, batch_size=8)
    fixed = columns.cast_column("input_ids", hf.List(hf.Value("int16"), length=7)) if workers else columns
    fixed = fixed.select(range(5, 15)).with_format("torch", columns=["input_ids"])
    assert_same_batches(fixed, "arrays", workers, batch_size=3)


def test_columns_that_are_no_rows_of_numbers_report_why(columns: Any) -> None:
    lacking = hf.Dataset.from_dict({"x": [1, None, 3]})
    cases = {
        '"text" is string': columns.with_format("torch", columns=["text"]),
        '"odd" have different lengths': columns.with_format("torch", columns=["odd"]),
        '"flag" is bool': columns.with_format("torch", columns=["flag"]),
        "more arguments": columns.with_format("torch", columns=["label"], dtype=torch.float64),
        '"x" has null rows': lacking.with_format("torch"),
    }
    for why, dataset in cases.items():
        loader = DataLoader(dataset, 2)
        assert plan_of(loader) == "python" and why in str(loader.explain()), (why, loader.explain())
    numbers = columns.with_format("torch", columns=["label"])
    other = numbers.rename_column("label", "other")
    assert plan_of(DataLoader(ConcatDataset([numbers, other]))) == "python"
    for wrong in ([0, COUNT], [0, -COUNT - 1]):
        with pytest.raises(IndexError):
            list(DataLoader(Subset(numbers, wrong), 2))
    assert_same_batches(Subset(numbers, [0, -1]), "arrays", batch_size=2)
