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

from feedline import DataLoader

vision = pytest.importorskip("torchvision")
transforms = pytest.importorskip("torchvision.transforms")


class Photos(Dataset[Any]):
    """Its images pass through a library that the engine does not know."""

    def __init__(self, paths: list[str], labels: list[int], transform: Any = None) -> None:
        self.paths, self.labels, self.transform = paths, labels, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = np.array(Image.open(self.paths[index]).convert("RGB"))
        if self.transform is not None:
            image = self.transform(image=image)["image"]
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


def test_each_kind_has_its_next_step(paths: list[str]) -> None:
    root = str(Path(paths[0]).parents[1])
    cases: list[tuple[Any, str, str]] = [
        (ByHelper(paths, [0] * 12), "read_image", "ImageFolder"),
        (
            Subset(Photos(paths, [0] * 12), [1, 2]),
            "array() uses the image outside of its transforms",
            "write feedline.files(self.paths, label=self.labels)",
        ),
        (ConcatDataset([Photos(paths, [0] * 12)] * 2), "Photos is not a dataset", "feedline.files(self.paths"),
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
