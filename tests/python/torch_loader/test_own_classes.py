# SPDX-License-Identifier: Apache-2.0
"""Users' dataset classes that look like one that runs natively: each sample stays as its class makes it."""

from __future__ import annotations

import collections
import functools
import io
import random
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset, Subset, random_split

from feedline import ConfigError, DataLoader

transforms = pytest.importorskip("torchvision.transforms")

from lowered import assert_same, plan_of  # noqa: E402

COUNT = 9
CHAIN = transforms.Compose([transforms.CenterCrop(20), transforms.ToTensor()])
RANDOM = transforms.Compose([transforms.RandomCrop(20), transforms.RandomHorizontalFlip(), transforms.ToTensor()])


class Photos(Dataset):
    def __init__(self, paths, transform=CHAIN):
        self.paths, self.labels, self.transform = list(paths), list(range(len(paths))), transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    for number in range(COUNT):
        pixels = np.random.default_rng(number).integers(0, 256, (30, 24 + number, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    return sorted(map(str, tmp_path.iterdir()))


def assert_as_torch(dataset: Any, loader: Any = None, **options: Any) -> None:
    loader = loader or DataLoader(dataset, 4, **options)
    for ours, theirs in zip(loader, TorchLoader(dataset, 4, **options), strict=True):
        assert_same(ours, theirs)


# -- classes that are refused


class SpecialImage(Photos):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        if index == 5:
            image = image.rotate(90)
        return self.transform(image), self.labels[index]


class SpecialLabel(Photos):
    def __getitem__(self, index):
        label = self.labels[index]
        if index == 5:
            label = -1
        return self.transform(Image.open(self.paths[index]).convert("RGB")), label


class SpecialPath(Photos):
    def __getitem__(self, index):
        path = self.paths[0] if index == 5 else self.paths[index]
        return self.transform(Image.open(path).convert("RGB")), self.labels[index]


class SpecialReturn(Photos):
    def __getitem__(self, index):
        if self.labels[index] == 5:
            return self.transform(Image.open(self.paths[0]).convert("RGB")), -1
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class Catches(Photos):
    def __getitem__(self, index):
        try:
            image = Image.open(self.paths[index]).convert("RGB")
        except OSError:
            image = Image.new("RGB", (24, 24))
        return self.transform(image), self.labels[index]


class Counts(Photos):
    calls = 0

    def __getitem__(self, index):
        self.calls += 1
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.calls


class CountsInHelper(Photos):
    def _path(self, index):
        self.last = index
        return self.paths[index]

    def __getitem__(self, index):
        return self.transform(Image.open(self._path(index)).convert("RGB")), self.labels[index]


class Appends(Photos):
    def __getitem__(self, index):
        self.labels.append(index)
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class Draws(Photos):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), random.randint(0, 0)


class DrawsWithTorch(Photos):
    def __getitem__(self, index):
        noise = torch.rand(1) * 0
        return self.transform(Image.open(self.paths[index]).convert("RGB")), noise


class ByProperty(Photos):
    @property
    def files(self):
        return self.paths

    def __getitem__(self, index):
        return self.transform(Image.open(self.files[index]).convert("RGB")), self.labels[index]


class AnyAttribute(Photos):
    def __getattr__(self, name):
        raise AttributeError(name)


class AnyAttributeItself(Photos):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


class ManyItems(Photos):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


class PerClassTransform(Photos):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        chosen = [self.transform, self.transform][self.labels[index] % 2]
        return chosen(image), self.labels[index]


class ChangesPixels(Photos):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        image.putpixel((12, 12), (0, 0, 0))
        return self.transform(image), self.labels[index]


class ReadAfterClosing(Photos):
    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            pass
        return self.transform(image), self.labels[index]


class ConvertedInClosedFile(Photos):
    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            if image.mode != "RGB":
                image = image.convert("RGB")
        return self.transform(image), self.labels[index]


class ConvertsSome(Photos):
    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        if image.mode == "L":
            image = image.convert("RGB")
        return self.transform(image), self.labels[index]


class ConvertsOnlyRgb(Photos):
    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        image = image.convert("RGB") if image.mode == "RGB" else image
        return self.transform(image), self.labels[index]


class ConvertsToAnotherMode(Photos):
    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        if image.mode != "RGB":
            image = image.convert("L")
        return self.transform(image), self.labels[index]


class OtherIndex(Photos):
    def __getitem__(self, index):
        at = 3 if index == 5 else index
        return self.transform(Image.open(self.paths[at]).convert("RGB")), self.labels[at]


def noted(function):
    @functools.wraps(function)
    def inner(self, index):
        return function(self, len(self) - 1 - index)

    return inner


class Decorated(Photos):
    @noted
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class ChangedInLoop(Photos):
    def __getitem__(self, index):
        label = 0
        for part in [1, 2, 3]:
            label = label + part
        return self.transform(Image.open(self.paths[index]).convert("RGB")), label


class SharedList(Photos):
    def __getitem__(self, index):
        row = self.labels
        row[0] = index
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class ItemOfSome(Photos):
    def __getitem__(self, index):
        sample = {"image": self.transform(Image.open(self.paths[index]).convert("RGB")), "label": 0}
        if self.labels[index] > 4:
            sample["label"] = 1
        return sample


class AddsInPlace(Photos):
    def __getitem__(self, index):
        label = torch.zeros(2)
        label += self.labels[index]
        return self.transform(Image.open(self.paths[index]).convert("RGB")), label


REFUSED = [
    (ItemOfSome, "is changed for each sample"),
    (AddsInPlace, "the engine cannot read the first, the last and some other samples"),
    (SpecialImage, "depending on their index"),
    (SpecialLabel, "depending on their index"),
    (SpecialPath, "depending on their index"),
    (SpecialReturn, "the code handles some samples differently"),
    (Catches, "'try' statements are not supported"),
    (Counts, "self.calls is changed for each sample"),
    (CountsInHelper, "self.last is changed for each sample"),
    (Appends, ".append() may change something"),
    (Draws, "may do anything"),
    (DrawsWithTorch, "rand() may do anything"),
    (ByProperty, "self.files is computed by a property"),
    (AnyAttribute, "the class or the object has __getattr__"),
    (AnyAttributeItself, "the class or the object has __getattribute__"),
    (ManyItems, "the class or the object has __getitems__"),
    (PerClassTransform, "depends on the sample"),
    (ChangesPixels, "image.putpixel() is not supported here"),
    (ReadAfterClosing, "its file is closed"),
    (ConvertedInClosedFile, "its file is closed"),
    (ConvertsSome, "the image is used outside of its transforms"),
    (ConvertsOnlyRgb, "the image is used outside of its transforms"),
    (ConvertsToAnotherMode, "the image is used outside of its transforms"),
    (OtherIndex, "depending on their index"),
    (Decorated, "has a decorator"),
    (ChangedInLoop, "is changed in a loop"),
    (SharedList, "row[0] is changed for each sample"),
]


@pytest.mark.parametrize(("kind", "why"), REFUSED, ids=[kind.__name__ for kind, _ in REFUSED])
def test_a_class_that_does_more_stays_in_python(paths: list[str], kind: Any, why: str) -> None:
    loader = DataLoader(kind(paths), 4)
    assert plan_of(loader) == "python"
    assert why in loader.explain()
    if kind not in (ReadAfterClosing, ConvertedInClosedFile):  # which raise Pillow's error
        for ours, theirs in zip(DataLoader(kind(paths), 4), TorchLoader(kind(paths), 4), strict=True):
            assert_same(ours, theirs)


class WithIndex(Photos):
    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return image, label, index


class ReadsBytes(Photos):
    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            image = Image.open(io.BytesIO(file.read())).convert("RGB")
        return self.transform(image), self.labels[index]


@pytest.mark.parametrize("kind", [OtherIndex, WithIndex, ReadsBytes])
def test_the_replacement_has_the_names_of_the_class(paths: list[str], kind: Any) -> None:
    assert "write feedline.files(self.paths, label=self.labels)," in DataLoader(kind(paths)).explain()


def test_the_reason_names_the_line(paths: list[str]) -> None:
    line = SpecialImage.__getitem__.__code__.co_firstlineno + 2
    assert f"line {line}: " in DataLoader(SpecialImage(paths)).explain()
    with pytest.raises(ConfigError, match=f"line {line}: the code handles some samples differently"):
        DataLoader(SpecialImage(paths), lower="require")


def test_code_that_is_not_its_source_stays_in_python(paths: list[str]) -> None:
    class Replaced(Photos):
        def __getitem__(self, index):
            return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]

    code = Replaced.__getitem__.__code__
    assert plan_of(DataLoader(Replaced(paths))) == "images"
    other = code.replace(co_consts=tuple("L" if constant == "RGB" else constant for constant in code.co_consts))
    Replaced.__getitem__.__code__ = other
    assert "differs from its code" in DataLoader(Replaced(paths)).explain()


def test_code_without_source_stays_in_python(paths: list[str]) -> None:
    names = {"Photos": Photos, "Image": Image}
    exec(
        "class Made(Photos):\n  def __getitem__(self, i):\n    return self.transform(Image.open(self.paths[i])), 0",
        names,
    )
    made: Any = names["Made"]
    assert "is not available" in DataLoader(made(paths)).explain()


# -- the comparison with the class's own samples


def test_a_changed_library_is_found_by_comparing_pixels(paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    convert = Image.Image.convert
    monkeypatch.setattr(Image.Image, "convert", lambda image, mode: convert(image, mode).transpose(0))
    for chain in (CHAIN, RANDOM, None):
        loader = DataLoader(Photos(paths, chain))
        assert plan_of(loader) == "python"
        assert "sample 0 of the dataset's own __getitem__ differs from the engine's: its pixels" in loader.explain()


def test_a_wrong_label_is_found(paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from feedline.torch_loader.lowering.own_code import plain_values

    monkeypatch.setattr(plain_values, "checked", lambda value: value + 1 if type(value) is int else value)
    assert "differs from the engine's" in DataLoader(Photos(paths)).explain()


def test_random_transforms_in_globals_and_closures(paths: list[str]) -> None:
    chain = RANDOM

    class Closure(Photos):
        def __getitem__(self, index):
            return chain(Image.open(self.paths[index]).convert("RGB")), self.labels[index]

    class Global(Photos):
        def __getitem__(self, index):
            image = RANDOM(Image.open(self.paths[index]).convert("RGB"))
            return image, self.labels[index]

    for kind in (Closure, Global):
        loader = DataLoader(kind(paths), 4)
        assert plan_of(loader) == "images", loader.explain()
        assert torch.cat([labels for _, labels in loader]).tolist() == list(range(COUNT))


def test_comparing_does_not_change_random_numbers_or_the_dataset(paths: list[str]) -> None:
    photos = Photos(paths, RANDOM)
    before = dict(vars(photos))
    torch.manual_seed(1)
    random.seed(1)
    expected = torch.rand(3), random.random()
    torch.manual_seed(1)
    random.seed(1)
    DataLoader(photos).explain()
    assert torch.equal(torch.rand(3), expected[0])
    assert random.random() == expected[1]
    assert vars(photos) == before


# -- changes between epochs


@pytest.mark.parametrize("workers", [0, 1])
def test_lists_that_change_between_epochs(paths: list[str], workers: int) -> None:
    photos = Photos(paths)
    loader = DataLoader(photos, 4, num_workers=workers)
    assert_as_torch(photos, loader)
    photos.labels = [label + 100 for label in photos.labels]
    assert_as_torch(photos, loader)
    photos.paths.reverse()
    assert_as_torch(photos, loader)
    photos.labels[0] = 7
    assert_as_torch(photos, loader)
    photos.transform = transforms.Compose([transforms.CenterCrop(12), transforms.ToTensor()])
    assert_as_torch(photos, loader)


def test_persistent_workers_see_what_is_broadcast(paths: list[str]) -> None:
    photos = Photos(paths)
    loader = DataLoader(photos, 4, num_workers=1, persistent_workers=True)
    assert_as_torch(photos, loader)
    loader.broadcast("labels", [label + 5 for label in photos.labels])
    assert_as_torch(photos, loader)
    loader.broadcast("transform", transforms.Compose([transforms.CenterCrop(12), transforms.ToTensor()]))
    assert_as_torch(photos, loader)


class ByEpoch(Photos):
    def set_epoch(self, epoch):
        self.labels = [label + 10 * epoch for label in range(len(self.paths))]


def test_set_epoch_of_a_dataset_in_persistent_workers(paths: list[str]) -> None:
    photos = ByEpoch(paths, transforms.Compose([transforms.CenterCrop(20), np.array]))
    loader = DataLoader(photos, 4, num_workers=1, persistent_workers=True)
    assert plan_of(loader) == "prefix"
    for epoch in range(3):
        loader.set_epoch(epoch)
        labels = torch.cat([labels for _, labels in loader])
        assert labels.tolist() == [label + 10 * epoch for label in range(COUNT)]


def test_two_names_of_one_dict(paths: list[str]) -> None:
    class Named(Photos):
        def __getitem__(self, index):
            sample = {"image": self.transform(Image.open(self.paths[index]).convert("RGB"))}
            other = sample
            other["label"] = self.labels[index]
            return sample

    loader = DataLoader(Named(paths), 4)
    assert plan_of(loader) == "images"
    assert_as_torch(Named(paths), loader)


# -- samples that the dataset itself reads


class Text(str):
    reads = 0

    def __fspath__(self):
        Text.reads += 1
        return str(self)


def test_elements_of_other_types_are_read_by_the_dataset(paths: list[str]) -> None:
    class Joined(Photos):
        def __getitem__(self, index):
            import_path = self.paths[index] + ""
            return self.transform(Image.open(import_path).convert("RGB")), self.labels[index]

    photos = Joined(paths)
    photos.paths[2] = Text(photos.paths[2])
    assert_as_torch(photos)


def test_containers_with_side_effects_stay_in_python(paths: list[str]) -> None:
    photos = Photos(paths)
    photos.labels = collections.defaultdict(int)  # type: ignore[assignment]
    assert plan_of(DataLoader(photos)) == "python"
    DataLoader(photos).explain()
    assert not photos.labels


def test_missing_files(paths: list[str]) -> None:
    photos = Photos(paths)
    photos.paths[6] = "/missing/photo.png"
    loader = DataLoader(photos, 4)
    assert plan_of(loader) == "images"
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(FileNotFoundError, match=r"/missing/photo\.png"):
        next(iterator)
    skipping = DataLoader(photos, 4, on_error="skip")
    labels = torch.cat([labels for _, labels in skipping])
    assert sorted(labels.tolist()) == [0, 1, 2, 3, 4, 5, 7, 8]
    assert [bad.record for bad in skipping.errors] == [6]


def test_images_that_are_not_stored_in_rgb_and_not_converted(paths: list[str]) -> None:
    class AsStored(Photos):
        def __getitem__(self, index):
            return self.transform(Image.open(self.paths[index])), self.labels[index]

    Image.open(paths[1]).convert("RGBA").save(paths[1])
    Image.open(paths[3]).convert("L").save(paths[3])
    Image.open(paths[4]).convert("P").save(paths[4])
    chain = transforms.Compose([transforms.CenterCrop(20), transforms.Grayscale(3), transforms.ToTensor()])
    photos = AsStored(paths, chain)
    loader = DataLoader(photos, 4)
    assert plan_of(loader) == "images"
    assert_as_torch(photos, loader)
    assert loader._progress.native_misses == 3
    photos.transform = CHAIN
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(DataLoader(photos, 4))


def test_images_that_are_converted_if_their_mode_is_another(paths: list[str]) -> None:
    class IfNeeded(Photos):
        def __getitem__(self, index):
            image = Image.open(self.paths[index])
            if image.mode != "RGB":
                image = image.convert("RGB")
            return self.transform(image), self.labels[index]

    class Unless(Photos):
        def __getitem__(self, index):
            image = Image.open(self.paths[index])
            image = image if image.mode == "RGB" else image.convert("RGB")
            return self.transform(image), self.labels[index]

    for number, mode in ((1, "RGBA"), (3, "L"), (4, "P")):
        Image.open(paths[number]).convert(mode).save(paths[number])
    for kind in (IfNeeded, Unless):
        loader = DataLoader(kind(paths), 4)
        assert plan_of(loader) == "images"
        assert_as_torch(kind(paths), loader)
        assert loader._progress.native_misses == 0


# -- the rest of the loader


def test_subsets(paths: list[str]) -> None:
    photos = Photos(paths)
    train, test = random_split(photos, [6, 3], torch.Generator().manual_seed(1))
    for part in (train, test, Subset(train, [0, 3, 5, 5])):
        loader = DataLoader(part, 4)
        assert plan_of(loader) == "images"
        assert_as_torch(part, loader)


def test_own_collate_and_unknown_transforms_use_workers(paths: list[str]) -> None:
    unknown = transforms.Compose([transforms.Resize(24), transforms.CenterCrop(20), np.array])
    for photos, collate in ((Photos(paths, unknown), None), (Photos(paths), list)):
        loader = DataLoader(photos, 4, num_workers=1, collate_fn=collate)
        assert plan_of(loader) == "prefix", loader.explain()
        assert_as_torch(photos, loader=loader, collate_fn=collate)


def test_a_target_transform_runs_once_for_each_sample(paths: list[str]) -> None:
    class WithTarget(Photos):
        def __getitem__(self, index):
            target = self.labels[index]
            if self.target_transform:
                target = self.target_transform(target)
            return self.transform(Image.open(self.paths[index]).convert("RGB")), target

    seen: list[int] = []
    photos = WithTarget(paths)
    photos.target_transform = lambda label: seen.append(label) or label + 1
    loader = DataLoader(photos, 4)
    assert plan_of(loader) == "prefix", loader.explain()
    assert seen == []
    assert torch.cat([labels for _, labels in loader]).tolist() == [label + 1 for label in range(COUNT)]
    assert seen == list(range(COUNT))


def test_a_library_function_as_transform(paths: list[str]) -> None:
    photos = Photos(paths, types.SimpleNamespace())
    assert plan_of(DataLoader(photos)) == "python"


def test_a_batch_mixer(paths: list[str]) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    mixer = v2.MixUp(num_classes=COUNT)

    def collate(batch):
        return mixer(*torch.utils.data.default_collate(batch))

    photos = Photos(paths)
    loader = DataLoader(photos, COUNT, collate_fn=collate)
    assert plan_of(loader) == "images", loader.explain()
    torch.manual_seed(3)
    ((images, targets),) = list(loader)
    torch.manual_seed(3)
    ((wanted, labels),) = list(TorchLoader(photos, COUNT, collate_fn=collate))
    torch.testing.assert_close(images, wanted)
    torch.testing.assert_close(targets, labels)


def test_workers_that_are_spawned(paths: list[str]) -> None:
    photos = Photos(paths, transforms.Compose([transforms.CenterCrop(20), np.array]))
    loader = DataLoader(photos, 4, num_workers=1, multiprocessing_context="spawn")
    assert plan_of(loader) == "prefix"
    assert_as_torch(photos, loader)
