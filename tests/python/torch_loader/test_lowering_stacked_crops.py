# SPDX-License-Identifier: Apache-2.0
"""FiveCrop and TenCrop followed by a function that stacks the crops, as in torchvision's documentation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from lowered import assert_same, assert_same_epochs, error_of, plan_of
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader

vision = pytest.importorskip("torchvision")
v1, v2 = pytest.importorskip("torchvision.transforms"), pytest.importorskip("torchvision.transforms.v2")
functional = pytest.importorskip("torchvision.transforms.functional")

MEAN, STD = [0.5, 0.4, 0.3], [0.5, 0.6, 0.7]
normalize, to_tensor = v1.Normalize(MEAN, STD), v1.ToTensor()
SCALED, NORMALIZED = v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)


def dataset_of(folder: Path, members: list[Any], module: Any = v1) -> Any:
    return vision.datasets.ImageFolder(folder, module.Compose(members))


def in_two_lines(crops: Any) -> Any:
    tensors = [normalize(to_tensor(crop)) for crop in crops]
    return torch.stack(tensors)


def with_an_argument(crops: Any, each: Any) -> Any:
    return torch.stack([each(crop) for crop in crops])


def closed_over(each: Any) -> Callable[[Any], Any]:
    return lambda crops: torch.stack([each(crop) for crop in crops])


class Stacked:
    def __init__(self, each: Any) -> None:
        self.each = each

    def __call__(self, crops: Any) -> Any:
        return torch.stack([self.each(crop) for crop in crops])

    def method(self, crops: Any) -> Any:
        return torch.stack([self.each(crop) for crop in crops])


FUNCTIONS: dict[str, Any] = {
    "the documentation's": lambda crops: torch.stack([v1.ToTensor()(crop) for crop in crops]),
    "of bytes": lambda crops: torch.stack([v1.PILToTensor()(crop) for crop in crops]),
    "by a module": lambda crops: torch.stack([vision.transforms.ToTensor()(crop) for crop in crops]),
    "normalized": lambda crops: torch.stack([normalize(v1.ToTensor()(crop)) for crop in crops]),
    "by a function": lambda crops: torch.stack([functional.to_tensor(crop) for crop in crops]),
    "of bytes by a function": lambda crops: torch.stack([functional.pil_to_tensor(crop) for crop in crops]),
    "a closure": closed_over(v1.Compose([v1.Resize(18), v1.ToTensor(), normalize])),
    "a partial": functools.partial(with_an_argument, each=to_tensor),
    "an object": Stacked(v1.Compose([v1.Grayscale(), v1.ToTensor()])),
    "a method": Stacked(to_tensor).method,
}


@pytest.mark.parametrize("wrap", [v1.Lambda, lambda function: function], ids=["Lambda", "itself"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_stacks_runs_natively_and_gives_torchs_batches(folder: Path, name: str, wrap: Any) -> None:
    dataset = dataset_of(folder, [v1.Resize(32), v1.TenCrop((20, 24)), wrap(FUNCTIONS[name])])
    assert_same_epochs(dataset, plan="images", batch_size=4)
    words = str(DataLoader(dataset, 4, lower="require").explain())
    assert "TenCrop  " in words and ", stack  " in words


CHAINS: dict[str, tuple[Any, list[Any]]] = {
    "five": (v1, [v1.FiveCrop(20), v1.Lambda(FUNCTIONS["the documentation's"])]),
    "normalized behind": (v1, [v1.FiveCrop((20, 31)), FUNCTIONS["the documentation's"], normalize]),
    "two functions": (
        v1,
        [
            v1.TenCrop(20, vertical_flip=True),
            v1.Lambda(FUNCTIONS["the documentation's"]),
            v1.Lambda(closed_over(normalize)),
        ],
    ),
    "bytes to floats behind": (v1, [v1.FiveCrop(20), FUNCTIONS["of bytes"], v1.ConvertImageDtype(torch.float32)]),
    "v2, each by itself": (
        v2,
        [v2.FiveCrop(20), v2.ToImage(), SCALED, NORMALIZED, lambda crops: torch.stack(crops)],
    ),
    "v2, all at once": (v2, [v2.TenCrop(20), v2.ToImage(), torch.stack, SCALED, NORMALIZED]),
    "v2, in the function": (
        v2,
        [v2.FiveCrop(20), lambda crops: torch.stack([SCALED(v2.ToImage()(crop)) for crop in crops]), NORMALIZED],
    ),
    "v2, of a tensor": (
        v2,
        [v2.ToImage(), v2.Resize(30), v2.TenCrop(20, vertical_flip=True), torch.stack, SCALED],
    ),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", CHAINS)
def test_what_surrounds_it_runs_natively(folder: Path, name: str, workers: int) -> None:
    module, members = CHAINS[name]
    assert_same_epochs(dataset_of(folder, members, module), plan="images", batch_size=4, workers=workers)


def same(image: Any) -> Any:
    return image


def test_after_a_function_of_ones_own_crops_are_native_too(folder: Path) -> None:
    for last in (FUNCTIONS["normalized"], lambda crops: [to_tensor(crop) for crop in crops]):
        dataset = dataset_of(folder, [v1.Resize(32), same, v1.FiveCrop(20), last])
        assert_same_epochs(dataset, plan="prefix", batch_size=4)
        lines = [line.split() for line in str(DataLoader(dataset, 4).explain()).splitlines()]
        (line,) = (words for words in lines if words[:2] == ["transform", "FiveCrop"])
        assert line[2] == "native," and " ".join(line).endswith("if same returns an RGB or L PIL image")


def test_crops_that_are_not_stacked_continue_as_a_tuple(folder: Path) -> None:
    for members in (
        [v2.FiveCrop(20), v2.ToImage(), SCALED],
        [v2.FiveCrop(20), v2.PILToTensor()],
        [v2.ToImage(), v2.TenCrop(20), v2.ToPureTensor()],
    ):
        assert_same_epochs(dataset_of(folder, members, v2), plan="prefix", batch_size=4)
    pictures = dataset_of(folder, [v1.Resize(30), v1.FiveCrop(20), lambda crops: [to_tensor(c).mean() for c in crops]])
    assert_same_epochs(pictures, plan="prefix", batch_size=4)


UNKNOWN: dict[str, Any] = {
    "two lines": in_two_lines,
    "a tuple": lambda crops: torch.stack(tuple(to_tensor(crop) for crop in crops)),
    "mapped": lambda crops: torch.stack(list(map(to_tensor, crops))),
    "by dim": lambda crops: torch.stack([to_tensor(crop) for crop in crops], dim=0),
    "joined": lambda crops: torch.cat([to_tensor(crop) for crop in crops]),
    "another place": lambda crops: torch.stack([to_tensor(crop) for crop in crops], dim=1),
    "some": lambda crops: torch.stack([to_tensor(crop) for crop in crops[:3]]),
    "backwards": lambda crops: torch.stack([to_tensor(crop) for crop in reversed(crops)]),
    "chosen": lambda crops: torch.stack([to_tensor(crop) for crop in crops if crop.width]),
    "changed": lambda crops: torch.stack([2 * to_tensor(crop) for crop in crops]),
    "more": lambda crops: torch.stack([to_tensor(crop) for crop in crops]).mean(0),
    "another one": lambda crops: torch.stack([torch.sin(to_tensor(crop)) for crop in crops]),
    "a class of one's own": lambda crops: torch.stack([Mine()(crop) for crop in crops]),
    "v2's Lambda": v2.Lambda(lambda crop: to_tensor(crop)),
}


class Mine(v1.ToTensor):
    def __call__(self, image: Any) -> Any:
        return super().__call__(image) / 2


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_functions_get_the_crops_themselves(folder: Path, name: str) -> None:
    dataset = dataset_of(folder, [v1.Resize(32), v1.FiveCrop(20), UNKNOWN[name]])
    loader = DataLoader(dataset, 4)
    assert plan_of(loader) == "prefix"
    assert "FiveCrop                         native" in str(loader.explain())
    assert_same(list(loader), list(TorchLoader(dataset, 4)))


def test_what_is_drawn_for_all_crops_at_once_is_not_drawn_for_each(folder: Path) -> None:
    """v1's flip of a tensor of crops mirrors all of them or none; the engine would draw for each."""
    stack = FUNCTIONS["of bytes"]
    flipped = dataset_of(folder, [v1.FiveCrop(20), stack, v1.RandomHorizontalFlip()])
    assert plan_of(DataLoader(flipped, 4)) == "prefix"
    assert "RandomHorizontalFlip of crops as one tensor is not" in str(DataLoader(flipped, 4).explain())
    each = dataset_of(folder, [v2.FiveCrop(20), v2.RandomHorizontalFlip(), v2.ToImage(), torch.stack], v2)
    assert "RandomHorizontalFlip of crops as a tuple is not" in str(DataLoader(each, 4).explain())
    within = v1.RandomChoice([v1.FiveCrop(20)])
    loader = DataLoader(dataset_of(folder, [v1.Resize(30), within, stack]), 4)
    assert "FiveCrop within another transform is not" in str(loader.explain())


def test_in_front_one_draw_is_for_all_and_in_the_function_one_for_each(folder: Path) -> None:
    flip = v1.RandomHorizontalFlip()
    before = [v1.Resize((40, 40)), flip, v1.FiveCrop(40), FUNCTIONS["of bytes"]]
    within = [v1.Resize((40, 40)), v1.FiveCrop(40), closed_over(v1.Compose([flip, v1.PILToTensor()]))]
    plain = next(iter(TorchLoader(dataset_of(folder, [v1.Resize((40, 40)), v1.PILToTensor()]), 1)))[0][0]
    seen = []
    for members in (before, within):
        loader = DataLoader(dataset_of(folder, members), 20, sampler=[0] * 200)
        assert plan_of(loader) == "images"
        mirrored = [tuple(torch.equal(crop, plain.flip(-1)) for crop in crops) for crops in next(iter(loader))[0]]
        mirrored += [
            tuple(torch.equal(crop, plain.flip(-1)) for crop in crops) for batch in loader for crops in batch[0]
        ]
        seen.append(set(mirrored))
    assert seen[0] == {(True,) * 5, (False,) * 5}
    assert len(seen[1]) > 20


def test_an_image_that_is_too_small_is_torchvisions_error(folder: Path) -> None:
    dataset = dataset_of(folder, [v1.Resize(16), v1.FiveCrop(20), FUNCTIONS["of bytes"]])
    found = [error_of(lambda kind=kind: list(kind(dataset, 4))) for kind in (DataLoader, TorchLoader)]
    assert found[0] is found[1] is ValueError
