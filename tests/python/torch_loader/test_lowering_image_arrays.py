# SPDX-License-Identifier: Apache-2.0
"""torchvision's datasets of images in memory, and its ImageNet: the engine returns the same as torch's loader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_in_torchvision
import torch
from lowered import assert_same, assert_same_epochs, error_of, plan_of
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Subset, WeightedRandomSampler

from feedline import DataLoader

COUNT = 37


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


def made(vision: Any, name: str, transform: Any, size: int = 32) -> Any:
    """As its constructor would create it from files with these images."""
    rng = np.random.default_rng(4)
    dataset = object.__new__(getattr(vision.datasets, name))
    dataset.transform, dataset.target_transform, dataset.train = transform, None, True
    labels = rng.integers(0, 10, COUNT)
    if name.startswith("CIFAR"):
        dataset.data, dataset.targets = rng.integers(0, 256, (COUNT, size, size, 3), np.uint8), labels.tolist()
    elif name == "SVHN":
        dataset.data, dataset.labels = rng.integers(0, 256, (COUNT, 3, size, size), np.uint8), labels
    else:
        dataset.data = torch.from_numpy(rng.integers(0, 256, (COUNT, 28, 28), np.uint8))
        dataset.targets = torch.from_numpy(labels)
    return dataset


NAMES = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "SVHN"]


def chains(vision: Any, name: str) -> dict[str, Any]:
    t = vision.transforms
    grey = "MNIST" in name
    normalize = t.Normalize((0.5,), (0.25,)) if grey else t.Normalize((0.5, 0.4, 0.3), (0.25, 0.2, 0.3))
    return {
        "to_tensor": t.ToTensor(),
        "usual": t.Compose([t.ToTensor(), normalize]),
        "resized": t.Compose([t.Resize(40), t.CenterCrop(30), t.ToTensor(), normalize]),
        "bytes": t.Compose([t.CenterCrop(20), t.PILToTensor()]),
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_those_of_torchs_loader(vision: Any, name: str, workers: int) -> None:
    for chain in chains(vision, name).values():
        dataset = made(vision, name, chain)
        assert_same_epochs(dataset, plan="images", epochs=2, workers=workers, batch_size=8, shuffle=True)
        assert_same_epochs(dataset, plan="images", batch_size=5, drop_last=True)


def test_subsets_weights_and_repeated_samples(vision: Any) -> None:
    dataset = made(vision, "CIFAR10", vision.transforms.ToTensor())
    assert_same_epochs(Subset(dataset, [3, 3, -1, 20, 0]), plan="images", batch_size=2)
    sampler = WeightedRandomSampler([1.0] * COUNT, 60)
    assert_same_epochs(dataset, plan="images", batch_size=16, sampler=sampler)
    for wrong in ([0, COUNT], [0, "a"], [-COUNT - 1]):
        ours, theirs = (kind(Subset(dataset, wrong), 2) for kind in (DataLoader, TorchLoader))
        assert error_of(lambda loader=ours: list(loader)) is error_of(lambda loader=theirs: list(loader)) is not None


def test_random_transforms_are_redrawn_and_the_same_by_seed(vision: Any) -> None:
    t = vision.transforms
    dataset = made(vision, "MNIST", t.Compose([t.RandomResizedCrop(28), t.RandomHorizontalFlip(), t.ToTensor()]))
    first, again = (DataLoader(dataset, 8, seed=1) for _ in range(2))
    assert plan_of(first) == "images", first.explain()
    epochs = [[images for images, _ in loader] for loader in (first, first, again)]
    assert all(images.shape[1:] == (1, 28, 28) for images in epochs[0])
    assert torch.equal(torch.cat(epochs[0]), torch.cat(epochs[2]))
    assert not torch.equal(torch.cat(epochs[0]), torch.cat(epochs[1]))


def test_what_is_written_into_the_images_shows(vision: Any) -> None:
    dataset = made(vision, "CIFAR10", vision.transforms.ToTensor())
    loader = DataLoader(dataset, COUNT)
    before = next(iter(loader))[0]
    dataset.data[:] = 255 - dataset.data
    dataset.targets[0] = 77
    assert_same(list(loader), list(TorchLoader(dataset, COUNT)))
    dataset.data = np.ascontiguousarray(dataset.data[:, ::-1])
    after = list(loader)
    assert_same(after, list(TorchLoader(dataset, COUNT)))
    assert not torch.equal(before, after[0][0])


def test_what_stays_in_python_reports_why(vision: Any) -> None:
    t = vision.transforms
    cases = {
        "Lambda": made(vision, "CIFAR10", t.Compose([t.Lambda(lambda image: image), t.ToTensor()])),
        "not tensors": made(vision, "CIFAR10", t.CenterCrop(8)),
        "float32": made(vision, "CIFAR10", t.ToTensor()),
        "target_transform": made(vision, "CIFAR10", t.ToTensor()),
    }
    cases["float32"].data = cases["float32"].data.astype(np.float32)
    cases["target_transform"].target_transform = str
    for why, dataset in cases.items():
        loader = DataLoader(dataset, 4)
        assert plan_of(loader) == "python" and why in str(loader.explain()), loader.explain()

    class Mine(type(made(vision, "CIFAR10", None))):  # type: ignore[misc]
        pass

    mine = made(vision, "CIFAR10", t.ToTensor())
    mine.__class__ = Mine
    assert plan_of(DataLoader(mine, 4)) == "python"


def test_imagenet_is_a_folder_of_images(vision: Any, folder: Path) -> None:
    t = vision.transforms
    chain = t.Compose([t.Resize(40), t.CenterCrop(32), t.ToTensor()])
    plain = vision.datasets.ImageFolder(str(folder), chain)
    imagenet = object.__new__(vision.datasets.ImageNet)
    imagenet.__dict__.update(plain.__dict__)
    assert_same_epochs(imagenet, plan="images", batch_size=4, shuffle=True)
