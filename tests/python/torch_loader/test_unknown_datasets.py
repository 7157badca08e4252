# SPDX-License-Identifier: Apache-2.0
"""Datasets that the engine does not know: explain() gives the reason, and a dataset that runs natively instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader

vision = pytest.importorskip("torchvision")
transforms = pytest.importorskip("torchvision.transforms")


class Photos(Dataset[Any]):
    """The class that tutorials write."""

    def __init__(self, paths: list[str], labels: list[int], transform: Any = None) -> None:
        self.paths, self.labels, self.transform = paths, labels, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


class ByHelper(Photos):
    def __getitem__(self, index: int) -> Any:
        return self._read(index), self.labels[index]

    def _read(self, index: int) -> Any:
        return vision.io.read_image(self.paths[index])


class Rows(Dataset[int]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


class Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(4))


class OwnFolder(vision.datasets.ImageFolder):  # type: ignore[misc, name-defined]
    pass


class OwnTensors(TensorDataset):
    pass


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    (tmp_path / "a").mkdir()
    for number in range(12):
        pixels = np.random.default_rng(number).integers(0, 256, (40, 30 + number, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "a" / f"{number:02}.png")
    return sorted(map(str, (tmp_path / "a").iterdir()))


def lines(loader: Any) -> dict[str, str]:
    return {line.split()[0]: line for line in loader.explain().splitlines()}


@pytest.mark.parametrize("workers", [0, 2])
def test_the_class_of_every_tutorial(paths: list[str], workers: int) -> None:
    chain = transforms.Compose([transforms.Resize(24), transforms.CenterCrop(16), transforms.ToTensor()])
    photos = Photos(paths, [number % 3 for number in range(12)], chain)
    ours = DataLoader(photos, batch_size=4, num_workers=workers)
    for (images, labels), (wanted, theirs) in zip(ours, TorchLoader(photos, batch_size=4), strict=True):
        torch.testing.assert_close(images, wanted)
        assert torch.equal(labels, theirs)
    found = lines(ours)
    assert "Photos is not a dataset that the engine knows: its __getitem__ is Python code" in found["read"]
    assert "torchvision.datasets.ImageFolder" in found["instead"] and "feedline.open(" in found["instead"]


def test_each_kind_has_its_next_step(paths: list[str]) -> None:
    root = str(Path(paths[0]).parents[1])
    cases: list[tuple[Any, str, str]] = [
        (ByHelper(paths, [0] * 12), "its __getitem__ is Python code", "ImageFolder"),
        (Subset(Photos(paths, [0] * 12), [1, 2]), "Photos is not a dataset", "ImageFolder"),
        (ConcatDataset([Photos(paths, [0] * 12)] * 2), "Photos is not a dataset", "ImageFolder"),
        (Rows(), "its __getitem__ is Python code", "feedline.arrays"),
        ([1, 2, 3], "list is not a dataset that the engine knows", "feedline.arrays"),
        (Stream(), "produces its samples itself", "feedline.open"),
        (
            OwnFolder(root),
            "it extends ImageFolder, whose methods it may change",
            "pass ImageFolder itself to the loader",
        ),
        (OwnTensors(torch.zeros(3)), "it extends TensorDataset", "pass TensorDataset itself to the loader; "),
    ]
    for dataset, why, instead in cases:
        found = lines(DataLoader(dataset, batch_size=2))
        assert why in found["read"]
        assert instead in found["instead"] and "docs/lowering.md" in found["instead"]


def test_known_datasets_and_loaders_that_are_not_to_be_lowered_have_none(paths: list[str]) -> None:
    root = str(Path(paths[0]).parents[1])
    whole = vision.datasets.ImageFolder(root, transforms.Compose([transforms.CenterCrop(16), transforms.ToTensor()]))
    own = vision.datasets.ImageFolder(root, lambda image: 0)
    for loader in (DataLoader(whole, 4), DataLoader(own, 4), DataLoader(TensorDataset(torch.zeros(3)), 2)):
        assert "instead" not in lines(loader)
    assert "instead" not in lines(DataLoader(Rows(), lower="never"))
