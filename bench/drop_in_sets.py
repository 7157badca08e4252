# SPDX-License-Identifier: Apache-2.0
"""Typical user datasets for bench/drop_in.py. Spawned workers import this module, so it imports little."""

from __future__ import annotations

import time
from typing import Any

import torch
from PIL import Image
from torch.utils.data import Dataset, TensorDataset


class LargeTensors(Dataset[torch.Tensor]):
    """Sample i is 4 MB of float32."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((1_000_000,), float(index))


class Scalars(Dataset[dict[str, float]]):
    """A sample is a dict of twenty numbers."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, float]:
        return {f"field_{k}": float(index * k) for k in range(20)}


class Paths(Dataset[int]):
    """A list of paths, as in a dataset of files. Nothing is read."""

    def __init__(self, count: int) -> None:
        self.paths = [f"/data/train/class_{i % 1000:04}/image_{i:08}.jpg" for i in range(count)]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> int:
        return len(self.paths[index])


class SlowSamples(Dataset[torch.Tensor]):
    """Samples of 48 KB. Reading one sleeps for 2 ms to simulate storage."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.002)
        return torch.full((3, 64, 64), float(index))


def table(rows: int) -> TensorDataset:
    return TensorDataset(torch.rand(rows, 16))


class OwnPhotos(Dataset[Any]):
    """A list of paths, a list of labels and a transform, as in most users' datasets."""

    def __init__(self, paths: list[str], labels: list[int], transform: Any) -> None:
        self.paths, self.labels, self.transform = paths, labels, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


def own_photos(folder: str) -> Any:
    """The files of photos() in a user-defined class."""
    made = photos(folder)
    paths, labels = zip(*made.samples, strict=True)
    return OwnPhotos(list(paths), list(labels), made.transform)


def photos(folder: str) -> Any:
    """torchvision's ImageFolder, as in its training examples."""
    from torchvision import datasets, transforms

    steps = [
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    return datasets.ImageFolder(folder, transforms.Compose(steps))
