# SPDX-License-Identifier: Apache-2.0
"""ConcatDatasets and Subsets of users' classes and image folders, whose parts may change between epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset, random_split
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader

transforms = pytest.importorskip("torchvision.transforms")
datasets = pytest.importorskip("torchvision.datasets")

from lowered import assert_same, plan_of  # noqa: E402

COUNT = 12
CHAIN = transforms.Compose([transforms.CenterCrop(20), transforms.ToTensor()])
FLIPPED = transforms.Compose([transforms.CenterCrop(20), transforms.RandomVerticalFlip(1.0), transforms.ToTensor()])


class Photos(Dataset):
    def __init__(self, paths, transform=CHAIN, first=0):
        self.paths, self.transform = list(paths), transform
        self.labels = list(range(first, first + len(paths)))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


class Listed(Photos):
    """Another class with the same fields."""

    def __getitem__(self, i):
        image, target = Image.open(self.paths[i]).convert("RGB"), self.labels[i] + 100
        return self.transform(image), target


class WithPath(Photos):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index], self.paths[index]


class Special(Photos):
    def __init__(self, files):
        self.files, self.numbers, self.transform = list(files), list(range(len(files))), CHAIN

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = Image.open(self.files[index]).convert("RGB")
        if index == 2:
            image = image.rotate(180)
        return self.transform(image), self.numbers[index]


class AddsInPlace(Photos):
    """Its code is recognised, but its values are not: `+=` changes the tensor itself."""

    def __getitem__(self, index):
        label = torch.zeros(())
        label += self.labels[index]
        return self.transform(Image.open(self.paths[index]).convert("RGB")), label


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
    for number in range(COUNT):
        pixels = np.random.default_rng(number).integers(0, 256, (30, 24 + number, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "ab"[number % 2] / f"{number:02}.png")
    return sorted(map(str, tmp_path.glob("*/*.png")))


@pytest.fixture
def folder(tmp_path: Path, paths: list[str]) -> Any:
    return datasets.ImageFolder(str(tmp_path), CHAIN)


def assert_as_torch(loader: Any, **options: Any) -> None:
    options = {"batch_size": loader.batch_size, "collate_fn": loader.collate_fn, **options}
    for ours, theirs in zip(loader, TorchLoader(loader.dataset, **options), strict=True):
        assert_same(ours, theirs)


def assert_native(loader: Any) -> None:
    """The engine reads all samples of the loader, and returns the same as torch."""
    assert plan_of(loader) == "images", loader.explain()
    before = loader._progress.native_rows
    assert_as_torch(loader)
    assert loader._progress.native_rows - before == len(loader.dataset)
    assert loader._progress.native_misses == 0


def test_parts_with_equal_transforms_run_natively(paths: list[str], folder: Any) -> None:
    one, two = Photos(paths[:7]), Photos(paths[7:], first=50)
    train, test = random_split(one, [4, 3], torch.Generator().manual_seed(1))
    joined = ConcatDataset([one, two])
    cases = [
        joined,
        ConcatDataset([one, Listed(paths)]),
        ConcatDataset([one, folder]),
        ConcatDataset([folder, Subset(one, [-1, 0])]),
        ConcatDataset([test, train]),
        ConcatDataset([one, one]),
        Subset(joined, torch.tensor([11, 0, 6, 7, 7])),
        Subset(joined, np.array([8, -3])),
        ConcatDataset([Subset(joined, [9, 2]), ConcatDataset([Subset(folder, range(3)), two])]),
        ConcatDataset([folder, datasets.ImageFolder(folder.root, CHAIN)]),
    ]
    for dataset in cases:
        assert_native(DataLoader(dataset, 4))
        assert_as_torch(DataLoader(dataset, 4, num_workers=1))


def test_random_transforms_draw_for_each_sample(paths: list[str]) -> None:
    random = transforms.Compose([transforms.RandomCrop(12), transforms.ToTensor()])
    joined = ConcatDataset([Photos(paths[:1] * 20, random), Photos(paths[:1] * 20, random)])
    loader = DataLoader(joined, 40)
    assert plan_of(loader) == "images"
    ((images, _),) = list(loader)
    assert len({image.numpy().tobytes() for image in images}) > 20


def test_other_transforms_run_in_workers(paths: list[str], folder: Any) -> None:
    for joined in (
        ConcatDataset([Photos(paths), Photos(paths, FLIPPED)]),
        ConcatDataset([Photos(paths, FLIPPED), folder]),
        ConcatDataset([folder, datasets.ImageFolder(folder.root, FLIPPED)]),
        Subset(ConcatDataset([Photos(paths), Photos(paths, FLIPPED)]), [20, 3, 15, 1]),
    ):
        for workers in (0, 1):
            loader = DataLoader(joined, 4, num_workers=workers)
            assert plan_of(loader) == "prefix"
            assert "have different transforms; if all have the same" in loader.explain()
            assert_as_torch(loader)


def test_an_unknown_transform_of_one_part(paths: list[str]) -> None:
    unknown = transforms.Compose([transforms.Resize((20, 20)), lambda image: image.rotate(90), transforms.ToTensor()])
    loader = DataLoader(ConcatDataset([Photos(paths), Photos(paths, unknown)]), 4, num_workers=1)
    assert plan_of(loader) == "prefix"
    assert "Photos 2: Resize" in loader.explain().replace("  ", " ")
    assert_as_torch(loader)


def test_other_fields_run_in_workers(paths: list[str]) -> None:
    loader = DataLoader(ConcatDataset([Photos(paths), WithPath(paths)]), 4, num_workers=1)
    assert plan_of(loader) == "prefix"
    assert "return different fields: return the same items" in loader.explain()
    assert_as_torch(loader)
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        list(DataLoader(loader.dataset, 8))


def test_target_transforms_and_own_collate_functions(paths: list[str], folder: Any) -> None:
    labelled = datasets.ImageFolder(folder.root, CHAIN, target_transform=lambda label: label + 7)
    for dataset, collate in ((ConcatDataset([Photos(paths), labelled]), None), (ConcatDataset([folder] * 2), list)):
        loader = DataLoader(dataset, 4, num_workers=1, collate_fn=collate)
        assert plan_of(loader) == "prefix"
        assert_as_torch(loader)


def test_a_part_that_does_more_is_named(paths: list[str], folder: Any) -> None:
    for first in (Photos(paths), folder):
        loader = DataLoader(ConcatDataset([first, Special(paths)]), 4)
        assert plan_of(loader) == "python"
        assert "Special is not a dataset that the engine knows: line" in loader.explain()
        assert "write feedline.files(self.files, label=self.numbers)" in loader.explain()
        assert_as_torch(loader)
    rows = TensorDataset(torch.zeros(4, 3, 20, 20), torch.arange(4))
    loader = DataLoader(ConcatDataset([folder, rows]), 4)
    assert plan_of(loader) == "python"
    assert "TensorDataset is concatenated with datasets of image files: use a loader for each" in loader.explain()
    assert_as_torch(loader)


def test_too_many_parts(paths: list[str], folder: Any) -> None:
    parts = [Photos(paths[:1]) for _ in range(65)]
    assert plan_of(DataLoader(ConcatDataset(parts[:64]), 4)) == "images"
    loader = DataLoader(ConcatDataset(parts), 4)
    assert plan_of(loader) == "python"
    assert "65 datasets of your own classes are concatenated, more than 64" in loader.explain()


def test_a_rare_part_is_compared(paths: list[str]) -> None:
    for rare in ([COUNT + 1], []):
        joined = Subset(ConcatDataset([Photos(paths), AddsInPlace(paths)]), [1, 2, 3] * 500 + rare + [1, 2, 3] * 500)
        loader = DataLoader(joined, 4)
        assert plan_of(loader) == ("python" if rare else "images")
        assert ("AddsInPlace: the engine cannot read the first" in loader.explain()) == bool(rare)


# -- changes between and within epochs


@pytest.mark.parametrize("workers", [0, 2])
def test_changes_between_epochs(paths: list[str], workers: int) -> None:
    one, two = Photos(paths[:7]), Photos(paths[7:], first=50)
    joined = ConcatDataset([one, two])
    subset = Subset(joined, [0, 8, 3, 11])
    loader = DataLoader(subset, 3, num_workers=workers)

    def swap() -> None:
        joined.datasets[1] = Listed(paths[7:])

    changes = [
        lambda: subset.indices.reverse(),
        lambda: setattr(subset, "indices", [5, 5, 1]),
        lambda: setattr(joined, "cumulative_sizes", [2, 12]),  # index 5 now reads the second part
        lambda: two.labels.__setitem__(3, -1),
        swap,
        lambda: setattr(one, "transform", FLIPPED),
        lambda: joined.datasets.append(Special(paths)),
        lambda: setattr(subset, "dataset", Special(paths)),
    ]
    assert_as_torch(loader)
    plans = []
    for change in changes:
        change()
        plans.append(plan_of(loader))
        assert_as_torch(loader)
    assert plans == ["images"] * 5 + ["prefix", "python", "python"]


def test_changes_within_an_epoch(paths: list[str]) -> None:
    joined = ConcatDataset([Photos(paths[:6]), Photos(paths[6:])])
    loader = DataLoader(joined, 2)
    iterator = iter(loader)
    found = [next(iterator)]
    joined.datasets[1] = Special(paths)
    found += iterator
    theirs = list(TorchLoader(joined, 2))
    assert_same(found[4:], theirs[4:])
    assert_same(found[0], theirs[0])
    assert len(found) == len(theirs)


class Shifted(Photos):
    def __init__(self, paths):
        super().__init__(paths)
        self.shift = [0]

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index] + self.shift[0]

    def set_epoch(self, epoch):
        self.shift[0] = 100 * epoch


@pytest.mark.parametrize("method", ["process", "thread"])
@pytest.mark.parametrize("joined", [False, True])
def test_persistent_workers_analyse_a_class_in_each_epoch(paths: list[str], joined: bool, method: str) -> None:
    photos: Any = Shifted(paths)
    dataset: Any = photos
    if joined:
        dataset = ConcatDataset([photos, Photos(paths)])
        dataset.set_epoch = photos.set_epoch  # as in training scripts
    loader = DataLoader(dataset, 4, num_workers=1, persistent_workers=True, collate_fn=list, worker_method=method)
    assert plan_of(loader) == "prefix"
    for epoch in (0, 1, 2):
        loader.set_epoch(epoch)
        labels = [label for batch in loader for _, label in batch]
        assert labels[:COUNT] == [index + 100 * epoch for index in range(COUNT)]


def test_replaced_methods(paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    subset = Subset(Photos(paths), [4, 2, 3])
    subset.__getitems__ = lambda indices: [(torch.zeros(2), -i) for i in indices]  # type: ignore[method-assign]
    photos: Any = Photos(paths)
    photos.__getitems__ = lambda indices: [(torch.ones(2), i) for i in indices]
    for dataset in (subset, photos, Subset(photos, [1, 2])):
        loader = DataLoader(dataset, 2)
        assert plan_of(loader) == "python"
        assert_as_torch(loader)
    inner = Subset.__getitem__
    monkeypatch.setattr(Subset, "__getitem__", lambda self, index: inner(self, len(self) - 1 - index))
    monkeypatch.setattr(Subset, "__getitems__", lambda self, indices: [self[index] for index in indices])
    loader = DataLoader(Subset(Photos(paths), [4, 2, 3]), 2)
    assert plan_of(loader) == "python"
    assert [labels.tolist() for _, labels in loader] == [[3, 2], [4]]


def test_a_missing_file_of_a_part(paths: list[str]) -> None:
    two = Photos(paths)
    two.paths[6] = "/missing/photo.png"
    loader = DataLoader(ConcatDataset([Photos(paths), two]), 4)
    assert plan_of(loader) == "images"
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    with pytest.raises(FileNotFoundError, match=r"/missing/photo\.png"):
        next(iterator)
    skipping = DataLoader(loader.dataset, 4, on_error="skip")
    labels = torch.cat([labels for _, labels in skipping])
    assert sorted(labels.tolist()) == sorted([*range(COUNT), *(set(range(COUNT)) - {6})])
