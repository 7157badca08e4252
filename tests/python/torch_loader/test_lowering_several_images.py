# SPDX-License-Identifier: Apache-2.0
"""Users' classes whose samples have several images, such as an image and its mask."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader
from feedline.torch_loader.native.images_iterator import Pipeline

transforms = pytest.importorskip("torchvision.transforms")

from lowered import assert_same, plan_of  # noqa: E402

COUNT = 11
CHAIN = transforms.Compose([transforms.CenterCrop(20), transforms.ToTensor()])
LABELS = transforms.Compose([transforms.CenterCrop(16), transforms.PILToTensor()])
RANDOM = transforms.Compose([transforms.RandomCrop(12), transforms.ToTensor()])


class Masked(Dataset):
    def __init__(self, images, masks, transform=CHAIN, mask_transform=LABELS):
        self.images, self.masks = list(images), list(masks)
        self.transform, self.mask_transform = transform, mask_transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = Image.open(self.images[index]).convert("RGB")
        mask = Image.open(self.masks[index]).convert("L")
        return self.transform(image), self.mask_transform(mask)


class MaskFirst(Masked):
    def __getitem__(self, index):
        mask = self.mask_transform(Image.open(self.masks[index]).convert("L"))
        return [index, mask, self.images[index], self.transform(Image.open(self.images[index]).convert("RGB"))]


class AsDict(Masked):
    def __getitem__(self, index):
        path = self.images[index]
        with Image.open(path.replace("photo", "mask")) as file:
            mask = self.mask_transform(file.convert("L"))
        return {"name": path, "mask": mask, "image": self.transform(Image.open(path).convert("RGB"))}


class Triplet(Masked):
    def __getitem__(self, index):
        anchor = Image.open(self.images[index]).convert("RGB")
        other = Image.open(self.images[(index + 1) % len(self.images)]).convert("RGB")
        return self.transform(anchor), self.transform(other), self.transform(Image.open(self.masks[index]).convert("L"))


class Halves(Masked):
    """Two images that share a transform without random numbers."""

    def __getitem__(self, index):
        whole = self.crop(Image.open(self.images[index]).convert("RGB"))
        return self.transform(whole), self.transform(whole.resize((20, 20)))

    crop = transforms.CenterCrop(22)


KINDS = [Masked, MaskFirst, AsDict, Triplet, Halves]


@pytest.fixture
def files(tmp_path: Path) -> tuple[list[str], list[str]]:
    names: tuple[list[str], list[str]] = ([], [])
    for number in range(COUNT):
        pixels = np.random.default_rng(number).integers(0, 256, (30, 24 + number, 3), np.uint8)
        for kind, made, listed in zip(("photo", "mask"), (pixels, pixels[..., 0] % 5), names, strict=True):
            listed.append(str(tmp_path / f"{kind}_{number:02}.png"))
            Image.fromarray(made).save(listed[-1])
    return names


def assert_as_torch(loader: Any) -> None:
    options = {"batch_size": loader.batch_size, "collate_fn": loader.collate_fn}
    for ours, theirs in zip(loader, TorchLoader(loader.dataset, **options), strict=True):
        assert_same(ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_each_image_has_its_own_transforms(files: Any, kind: Any) -> None:
    for workers in (0, 2):
        loader = DataLoader(kind(*files), 4, num_workers=workers)
        assert plan_of(loader) == "images", loader.explain()
        for _ in range(2):
            assert_as_torch(loader)
        assert (loader._progress.native_rows, loader._progress.native_misses) == (2 * COUNT, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_own_collate_functions_use_workers(files: Any, kind: Any) -> None:
    for dataset in (kind(*files), kind(*files, CHAIN, transforms.Compose([transforms.Pad(2), *LABELS.transforms]))):
        loader = DataLoader(dataset, 4, num_workers=1, collate_fn=list)
        assert plan_of(loader) == "prefix", loader.explain()
        assert_as_torch(loader)


def test_stages_are_named_by_key_or_position(files: Any) -> None:
    for kind, names in ((AsDict, ("mask", "image")), (Masked, ("item 1", "item 0"))):
        for collate in (None, list):
            explained = DataLoader(kind(*files), 4, collate_fn=collate).explain()
            for stage in ("CenterCrop", "PILToTensor"):
                assert f"  {names[0]}: {stage} " in explained
            assert f"  {names[1]}: ToTensor " in explained


def test_images_draw_separate_random_numbers(files: Any) -> None:
    images, _ = files

    class Views(Masked):
        def __getitem__(self, index):
            return (
                self.transform(Image.open(self.images[index]).convert("RGB")),
                self.transform(Image.open(self.masks[index]).convert("RGB")),
            )

    def epochs() -> Any:
        loader = DataLoader(Views(images, images, RANDOM), COUNT, num_workers=1)
        assert plan_of(loader) == "images"
        torch.manual_seed(1)
        return [batch for _ in range(2) for batch in loader]

    (one, other), (later, _) = epochs()
    assert sum(torch.equal(*pair) for pair in zip(one, other, strict=True)) < COUNT
    assert not torch.equal(one, later)
    assert_same(epochs()[0], [one, other])


# -- classes that are refused


class SharedCrop(Masked):
    def __getitem__(self, index):
        image = self.transform(Image.open(self.images[index]).convert("RGB"))
        return image, self.mask_transform(image)


class SameTwice(Masked):
    def __getitem__(self, index):
        image = self.transform(Image.open(self.images[index]).convert("RGB"))
        return image, image


class Seeded(Masked):
    def __getitem__(self, index):
        image, mask = Image.open(self.images[index]).convert("RGB"), Image.open(self.masks[index]).convert("L")
        torch.manual_seed(index)
        image = self.transform(image)
        torch.manual_seed(index)
        return image, self.transform(mask)


class Together(Masked):
    def __getitem__(self, index):
        image, mask = Image.open(self.images[index]).convert("RGB"), Image.open(self.masks[index]).convert("L")
        return self.mask_transform(image, mask)


class ByName(Masked):
    def __getitem__(self, index):
        image, mask = Image.open(self.images[index]).convert("RGB"), Image.open(self.masks[index]).convert("L")
        made = self.mask_transform(image=image, mask=mask)
        return made["image"], made["mask"]


class SpecialMask(Masked):
    def __getitem__(self, index):
        path = self.masks[0] if index == 7 else self.masks[index]
        return self.transform(Image.open(self.images[index]).convert("RGB")), self.mask_transform(Image.open(path))


class NoMask(Masked):
    def __getitem__(self, index):
        try:
            mask = Image.open(self.masks[index]).convert("L")
        except OSError:
            mask = Image.new("L", (20, 20))
        return self.transform(Image.open(self.images[index]).convert("RGB")), self.mask_transform(mask)


class EmptyMask(Masked):
    def __getitem__(self, index):
        image = self.transform(Image.open(self.images[index]).convert("RGB"))
        if self.masks[index]:
            mask = self.mask_transform(Image.open(self.masks[index]).convert("L"))
        else:
            mask = torch.zeros(1, 16, 16, dtype=torch.uint8)
        return image, mask


class Nested(Masked):
    def __getitem__(self, index):
        image, mask = Image.open(self.images[index]).convert("RGB"), Image.open(self.masks[index]).convert("L")
        return self.transform(image), {"mask": self.mask_transform(mask)}


class Paired:
    """Reuses the position of its previous call in every second call."""

    def __init__(self) -> None:
        self.calls, self.left = 0, 0

    def __call__(self, image):
        self.calls += 1
        if self.calls % 2:
            self.left = random.randrange(4)
        return transforms.functional.to_tensor(image.crop((self.left, 0, self.left + 20, 20)))


def joint(image, mask):
    return transforms.functional.to_tensor(image.crop((0, 0, 9, 9))), np.asarray(mask.crop((0, 0, 9, 9)))


def by_name(image, mask):
    return dict(zip(("image", "mask"), joint(image, mask), strict=True))


class ArrayTogether(Masked):
    def __getitem__(self, index):
        image, mask = Image.open(self.images[index]).convert("RGB"), np.array(Image.open(self.masks[index]))
        return self.transform(image), self.mask_transform(mask)


class ArrayOfTransformed(Masked):
    def __getitem__(self, index):
        image, mask = Image.open(self.images[index]).convert("RGB"), Image.open(self.masks[index]).convert("L")
        return self.transform(image), np.array(self.mask_transform(mask))


class ResizedAsStored(Masked):
    def __getitem__(self, index):
        image, mask = Image.open(self.images[index]), Image.open(self.masks[index]).resize((20, 20), Image.NEAREST)
        return self.transform(image), self.mask_transform(mask)


PAIRED = Paired()
CALLS = "write feedline.files(self.images, mask=self.masks), whose operations transform a sample's images together"
REFUSED = [
    (
        SharedCrop,
        (RANDOM, transforms.Normalize([0.5] * 3, [0.5] * 3)),
        "share the result of a random transform",
        "self.images",
    ),
    (SameTwice, (CHAIN, None), "a sample contains the same image twice", "self.images"),
    (Seeded, (RANDOM, None), "manual_seed has a decorator", CALLS),
    (Masked, (PAIRED, PAIRED), "whose transforms must all be known: Paired is not supported", CALLS),
    (Together, (CHAIN, joint), "joint() transforms several images together", CALLS),
    (Together, (CHAIN, PAIRED), "Paired() transforms several images together", CALLS),
    (ByName, (CHAIN, by_name), "by_name() transforms several images together", CALLS),
    (SpecialMask, (CHAIN, LABELS), "depending on their index", CALLS),
    (NoMask, (CHAIN, LABELS), "'try' statements are not supported", CALLS),
    (EmptyMask, (CHAIN, LABELS), "the code handles some samples differently", CALLS),
    (Nested, (CHAIN, LABELS), "a sample has images in an inner container", CALLS),
    (ArrayTogether, (PAIRED, PAIRED), "if the class also calls a function of the user", "mask=self.masks"),
    (ArrayOfTransformed, (CHAIN, CHAIN), "array() uses the image outside of its transforms", CALLS),
    (ResizedAsStored, (CHAIN, LABELS), "image.resize() is not supported here; put Resize into the transform", CALLS),
]


@pytest.mark.parametrize(("kind", "given", "why", "instead"), REFUSED)
def test_a_class_that_does_more_stays_in_python(files: Any, kind: Any, given: Any, why: str, instead: str) -> None:
    loader = DataLoader(kind(*files, *given), 4)
    assert plan_of(loader) == "python", loader.explain()
    assert why in loader.explain(), loader.explain()
    assert instead in loader.explain(), loader.explain()
    if not isinstance(given[1], Paired):
        torch.manual_seed(3)
        ours = list(loader)
        torch.manual_seed(3)
        assert_same(ours, list(TorchLoader(loader.dataset, 4)))


def test_a_random_crop_that_is_shared_is_the_same_for_both(files: Any) -> None:
    ((one, other),) = list(DataLoader(SameTwice(*files, RANDOM), COUNT))
    assert torch.equal(one, other)


# -- masks that the class converts to arrays


class ArrayMask(Masked):
    def __getitem__(self, index):
        image, mask = Image.open(self.images[index]).convert("RGB"), np.array(Image.open(self.masks[index]))
        return self.transform(image), torch.from_numpy(mask[:16, :16]).long()


@pytest.mark.parametrize("workers", [0, 2])
def test_arrays_of_masks_are_made_by_the_class_itself(files: Any, workers: int, monkeypatch: Any) -> None:
    opened, pillow = [], Image.open
    monkeypatch.setattr(Image, "open", lambda path: opened.append(path) or pillow(path))
    loader = DataLoader(ArrayMask(*files), 4, num_workers=workers)
    assert plan_of(loader) == "prefix"
    assert re.search(r"np\.array +Python.*your own code reads the images that it converts", loader.explain())
    assert_as_torch(loader)
    opened.clear()
    assert len(list(loader)) == 3
    assert opened == ([] if workers else files[1])  # no photos


def test_a_missing_mask_of_an_array_is_an_error_of_the_class(files: Any) -> None:
    masked = ArrayMask(*files)
    masked.masks[6] = "/missing/mask.png"
    with pytest.raises(FileNotFoundError, match=r"/missing/mask\.png"):
        list(DataLoader(masked, 4))


# -- samples that the dataset itself reads


def test_masks_that_are_not_converted(files: Any) -> None:
    class AsStored(Masked):
        def __getitem__(self, index):
            image, mask = Image.open(self.images[index]), Image.open(self.masks[index])
            return self.transform(image), self.mask_transform(mask)

    loader = DataLoader(AsStored(*files), 4)
    assert plan_of(loader) == "python"
    assert 'not stored in RGB need .convert("RGB") or .convert("L") after Image.open' in loader.explain()
    assert_as_torch(loader)
    loader = DataLoader(AsStored(files[0], files[0][:5] + files[1][5:6] + files[0][6:], CHAIN, CHAIN), 1)
    assert plan_of(loader) == "images"
    assert_as_torch(loader)
    assert loader._progress.native_misses == 1


def test_missing_and_damaged_masks(files: Any) -> None:
    for kind in (Masked, MaskFirst):  # the mask is the second or the first image
        masked = kind(*files)
        masked.masks[6] = "/missing/mask.png"
        loader = DataLoader(masked, 4)
        assert plan_of(loader) == "images"
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(FileNotFoundError, match=r"/missing/mask\.png"):
            next(iterator)
        assert_same(next(iterator), next(iter(TorchLoader(Subset(masked, range(8, COUNT)), 4))))
    Path(files[1][2]).write_bytes(b"no image")
    skipping = DataLoader(masked, 4, on_error="skip")
    found = {int(i): (mask, image) for batch in skipping for i, mask, _, image in zip(*batch, strict=True)}
    good = [i for i in range(COUNT) if i not in (2, 6)]
    assert sorted(found) == good
    assert_same([list(found[i]) for i in good], [[masked[i][1], masked[i][3]] for i in good])
    assert [bad.record for bad in skipping.errors] == [2, 6]


def test_an_interrupted_wait_for_the_second_image(files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(Masked(*files), 4)
    theirs = list(TorchLoader(loader.dataset, 4))
    iterator = iter(loader)
    found = [next(iterator)]
    calls, inner = [], Pipeline.next

    def interrupted(pipeline: Any) -> Any:
        calls.append(pipeline)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return inner(pipeline)

    monkeypatch.setattr(Pipeline, "next", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    found += iterator
    assert_same(found, theirs)
    assert len(set(map(id, calls))) == 2


# -- changes, and several datasets


@pytest.mark.parametrize("workers", [0, 1])
def test_changes_between_epochs(files: Any, workers: int) -> None:
    masked = Masked(*files)
    loader = DataLoader(masked, 4, num_workers=workers)
    changes = [
        lambda: masked.masks.reverse(),
        lambda: setattr(masked, "masks", files[0]),
        lambda: setattr(masked, "mask_transform", CHAIN),
        lambda: setattr(masked, "mask_transform", Paired()),
    ]
    plans = []
    for change in changes:
        change()
        plans.append(plan_of(loader))
        if plans[-1] == "images":
            assert_as_torch(loader)
    assert plans == ["images"] * 3 + ["python"]


def test_concatenated_datasets(files: Any) -> None:
    joined = ConcatDataset([Masked(*files), Subset(Masked(*files), [3, 1])])
    assert plan_of(DataLoader(joined, 4)) == "images"
    assert_as_torch(DataLoader(joined, 4))
    for other in (Masked(*files, CHAIN, CHAIN), Triplet(*files)):
        loader = DataLoader(ConcatDataset([Masked(*files), other]), COUNT, num_workers=1)
        assert plan_of(loader) == "prefix"
        assert_as_torch(loader)
