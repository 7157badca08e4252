# SPDX-License-Identifier: Apache-2.0
"""torchvision's COCO, VOC and FakeData: images are loaded natively, and targets by torchvision's own code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_in_torchvision
import torch
from lowered import assert_same, assert_same_epochs, error_of, plan_of, random_states
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Subset

from feedline import DataLoader

COUNT = 9


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


class Annotations:
    """The parts of pycocotools' COCO that torchvision uses."""

    def loadImgs(self, number: int) -> list[dict[str, Any]]:
        return [{"id": number, "file_name": f"{number - 100}.jpg"}]

    def getAnnIds(self, number: int) -> list[int]:
        return [10 * number + i for i in range(number % 4)]

    def loadAnns(self, numbers: list[int]) -> list[dict[str, Any]]:
        return [{"id": n, "bbox": [n % 7, 1.5, 3, 4], "caption": f"number {n}"} for n in numbers]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("annotated")
    rng = np.random.default_rng(2)
    for i in range(COUNT):
        pixels = rng.integers(0, 256, (6, 7, 3), np.uint8)
        Image.fromarray(pixels).resize((40 + i, 60 - i)).convert("L" if i == 4 else "RGB").save(root / f"{i}.jpg")
        Image.fromarray(rng.integers(0, 9, (60 - i, 40 + i), np.uint8)).save(root / f"{i}.png")
        boxes = "".join(f"<object><name>{k}</name></object>" for k in range(i % 3))
        (root / f"{i}.xml").write_text(f"<annotation><filename>{i}.jpg</filename>{boxes}</annotation>")
    return root


def made(vision: Any, root: Path, name: str, transform: Any, target_transform: Any = None) -> Any:
    """As created by its constructor."""
    dataset = object.__new__(getattr(vision.datasets, name))
    standard = vision.datasets.vision.StandardTransform(transform, target_transform)
    dataset.transforms = standard if transform or target_transform else None
    dataset.transform, dataset.target_transform, dataset.root = transform, target_transform, str(root)
    if name.startswith("Coco"):
        dataset.ids, dataset.coco = [100 + i for i in range(COUNT)], Annotations()
    else:
        end = "xml" if name == "VOCDetection" else "png"
        dataset.images = [str(root / f"{i}.jpg") for i in range(COUNT)]
        dataset.targets = [str(root / f"{i}.{end}") for i in range(COUNT)]
    return dataset


def listed(batch: Any) -> Any:
    """Collates like the detection references, with masks as arrays, which can be compared."""
    return [(image, np.asarray(target) if isinstance(target, Image.Image) else target) for image, target in batch]


NAMES = ["CocoDetection", "CocoCaptions", "VOCDetection", "VOCSegmentation"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workers", [0, 2])
def test_samples_are_torchs(vision: Any, root: Path, name: str, workers: int) -> None:
    t = vision.transforms
    chain = t.Compose([t.Resize(30), t.CenterCrop(24), t.ToTensor(), t.Lambda(lambda image: image * 2)])
    dataset = made(
        vision, root, name, chain, lambda target: target if name == "VOCSegmentation" else (len(target), target)
    )
    options: dict[str, Any] = {"batch_size": 4, "collate_fn": listed, "shuffle": True}
    assert_same_epochs(dataset, plan="prefix", workers=workers, **options)
    plain = made(vision, root, name, t.PILToTensor())
    assert_same_epochs(Subset(plain, [3, 3, 8, 0]), plan="prefix", workers=workers, batch_size=3, collate_fn=listed)
    text = str(DataLoader(dataset, num_workers=workers, **options).explain())
    assert ("within each worker" if workers else "native, in this process") in text


def test_damage_and_odd_rows_are_the_datasets(vision: Any, root: Path, tmp_path: Path) -> None:
    t = vision.transforms
    dataset = made(vision, root, "VOCDetection", t.ToTensor())
    dataset.images[2] = str(tmp_path / "nowhere.jpg")
    (tmp_path / "text.jpg").write_text("no image")
    dataset.images[3] = str(tmp_path / "text.jpg")
    coco = made(vision, root, "CocoDetection", t.ToTensor())
    for wrong, number in ((dataset, 2), (dataset, 3), (dataset, COUNT), (coco, "a"), (coco, COUNT)):
        errors = [
            error_of(lambda kind=kind, wrong=wrong, number=number: list(kind(Subset(wrong, [number]), collate_fn=list)))
            for kind in (DataLoader, TorchLoader)
        ]
        assert errors[0] is errors[1] is not None


def test_what_is_not_lowered_reports_why(vision: Any, root: Path) -> None:
    t = vision.transforms
    joint, altered = (made(vision, root, "CocoDetection", t.ToTensor()) for _ in range(2))
    joint.transforms = lambda image, target: (image, target)
    altered._load_target = lambda number: []
    cases = {
        "transforms= changes images and targets together": joint,
        "_load_target of this dataset object": altered,
        "Lambda": made(vision, root, "CocoDetection", t.Lambda(lambda image: image)),
    }
    for why, dataset in cases.items():
        loader = DataLoader(dataset, 2, collate_fn=list)
        assert plan_of(loader) == "python" and why in str(loader.explain()), loader.explain()


@pytest.mark.parametrize("shape", [(3, 20, 31), (1, 28, 28)])
@pytest.mark.parametrize("workers", [0, 2])
def test_fake_data_are_arrays(vision: Any, shape: Any, workers: int) -> None:
    t = vision.transforms
    dataset = vision.datasets.FakeData(20, shape, 7, transform=t.ToTensor(), random_offset=5)
    before = random_states()
    assert plan_of(DataLoader(dataset, 4)) == "images"
    assert before == random_states()
    assert_same_epochs(dataset, plan="images", epochs=2, workers=workers, batch_size=6, shuffle=True)
    assert_same_epochs(Subset(dataset, [3, 3, 19]), plan="images", workers=workers, batch_size=2)
    loader = DataLoader(dataset, 20)
    list(loader)
    dataset.random_offset = 9  # different images from here on
    assert_same(list(loader), list(TorchLoader(dataset, 20)))


def test_fake_data_that_are_not_arrays(vision: Any) -> None:
    t = vision.transforms
    large = vision.datasets.FakeData(2000, transform=t.ToTensor())
    many = vision.datasets.FakeData(4, (5, 8, 8), transform=t.ToTensor())
    for dataset, why in ((large, "more than 256 MiB"), (many, "shape (5, 8, 8)")):
        loader = DataLoader(dataset, 2)
        assert plan_of(loader) == "python" and why in str(loader.explain())
    small = vision.datasets.FakeData(4, (3, 8, 8), transform=t.ToTensor())
    for wrong in ([0, 4], [-1, 0]):
        ours, theirs = (kind(Subset(small, wrong), 2) for kind in (DataLoader, TorchLoader))
        assert error_of(lambda loader=ours: list(loader)) is error_of(lambda loader=theirs: list(loader))
    assert torch.equal(next(iter(DataLoader(Subset(small, [-1]))))[0][0], small[-1][0])
