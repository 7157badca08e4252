# SPDX-License-Identifier: Apache-2.0
"""Chains of torchvision v2 that first convert images to tensors, as in its documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lowered import assert_same, plan_of
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader

vision = pytest.importorskip("torchvision")
v1, v2 = pytest.importorskip("torchvision.transforms"), pytest.importorskip("torchvision.transforms.v2")

WHOLE = (50.0, 60.0)  # a scale for which no crop fits into the image: the largest crop within the ratio is used
BICUBIC = v2.InterpolationMode.BICUBIC
NORMALIZED = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5, 0.4, 0.3], [0.5, 0.6, 0.7])]


def dataset_of(folder: Path, members: list[Any]) -> Any:
    return vision.datasets.ImageFolder(folder, v2.Compose(members))


KNOWN: dict[str, list[Any]] = {
    "evaluation": [v2.ToImage(), v2.Resize(30), v2.CenterCrop(24), *NORMALIZED],
    "bicubic": [v2.ToImage(), v2.Resize(30, BICUBIC), v2.CenterCrop((24, 20)), *NORMALIZED],
    "both edges": [v2.PILToTensor(), v2.Resize((37, 21))],
    "at most": [v2.ToImage(), v2.Resize(30, max_size=33), v2.CenterCrop(40), *NORMALIZED],
    "enlarged": [v2.ToImage(), v2.Resize((190, 230), BICUBIC)],
    "training": [v2.ToImage(), v2.RandomResizedCrop(32, WHOLE), v2.RandomHorizontalFlip(1.0), *NORMALIZED],
    "training, bicubic": [v2.PILToTensor(), v2.RandomResizedCrop((20, 40), WHOLE, interpolation=BICUBIC), *NORMALIZED],
    "twice": [v2.ToImage(), v2.Resize((60, 70)), v2.Resize((31, 30), BICUBIC), *NORMALIZED],
    "both kinds": [v2.Resize((60, 70)), v2.ToImage(), v2.Resize((31, 30)), *NORMALIZED],
    "a border": [v2.ToImage(), v2.Resize((30, 30)), v2.Pad([1, 2, 3, 4], fill=9), *NORMALIZED],
    "a border of colours": [v2.ToImage(), v2.Resize((30, 30)), v2.Pad(3, fill=(1, 20, 255)), *NORMALIZED],
    "a crop with a border": [v2.ToImage(), v2.Resize((30, 30)), v2.RandomCrop(34, padding=2, fill=7), *NORMALIZED],
    "a needed border": [v2.ToImage(), v2.Resize((30, 20)), v2.RandomCrop((30, 20), pad_if_needed=True), *NORMALIZED],
    "RGB": [v2.ToImage(), v2.RGB(), v2.Resize((30, 30)), *NORMALIZED],
    "v1's crops": [
        v1.PILToTensor(),
        v1.CenterCrop(50),
        v1.RandomHorizontalFlip(1.0),
        v1.ConvertImageDtype(torch.float32),
    ],
}


@pytest.mark.parametrize("name", KNOWN)
def test_they_run_natively_and_give_torchs_batches(folder: Path, name: str) -> None:
    dataset = dataset_of(folder, KNOWN[name])
    loader = DataLoader(dataset, 8)
    assert plan_of(loader) == "images", loader.explain()
    assert_same(list(loader), list(TorchLoader(dataset, 8)))


UNKNOWN: dict[str, tuple[list[Any], str]] = {
    "v1": ([v1.PILToTensor(), v1.Resize((30, 30), antialias=True)], "Resize of a uint8 tensor by 'bilinear' is not"),
    "nearest": (
        [v2.ToImage(), v2.Resize((30, 30), v2.InterpolationMode.NEAREST)],
        "Resize of a uint8 tensor by 'nearest' is not",
    ),
    "not antialiased": ([v2.ToImage(), v2.Resize((30, 30), antialias=False)], "antialias=False is not supported"),
    "a reflection": (
        [v2.ToImage(), v2.Resize((30, 30)), v2.Pad(3, padding_mode="reflect")],
        "Pad of a uint8 tensor with padding_mode='reflect'",
    ),
    "colours": (
        [v2.ToImage(), v2.Resize((30, 30)), v2.ColorJitter(0.2)],
        "ColorJitter of a uint8 tensor is not supported by the engine",
    ),
    "floats": ([v2.ToImage(), NORMALIZED[0], v2.Resize((30, 30))], "Resize of a float32 tensor is not supported"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_tensors_have_of_their_own_stays_in_python(folder: Path, name: str) -> None:
    members, why = UNKNOWN[name]
    dataset = dataset_of(folder, members)
    loader = DataLoader(dataset, 8, seed=3)
    assert plan_of(loader) != "images"
    assert why in str(loader.explain())


def test_a_torchvision_that_resizes_otherwise_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without AVX2, the processor resizes bilinearly in float32."""
    geometry = pytest.importorskip("torchvision.transforms.v2.functional._geometry")
    monkeypatch.setattr(geometry, "_do_native_uint8_resize_on_cpu", lambda mode: mode == BICUBIC)
    assert plan_of(DataLoader(dataset_of(folder, KNOWN["bicubic"]), 8)) == "images"
    assert plan_of(DataLoader(dataset_of(folder, KNOWN["evaluation"]), 8)) != "images"
