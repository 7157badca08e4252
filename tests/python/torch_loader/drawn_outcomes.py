# SPDX-License-Identifier: Apache-2.0
"""Compares all images that random transforms can make from one image, with their probabilities, with the engine's."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import made_data
import pytest
from lowered import plan_of
from PIL import Image
from scipy.stats import chisquare

from feedline import DataLoader

vision = pytest.importorskip("torchvision")
v1 = pytest.importorskip("torchvision.transforms")

DRAWS, SIZE = 20_000, (24, 28)
Outcomes = dict[bytes, float]  # an image's pixels, and their probability


def small_photo(root: Path) -> Path:
    """A folder with one small image, for which every change has a different result."""
    (root / "all").mkdir()
    Image.fromarray(made_data.photo(7, 33, 26)).save(root / "all" / "0.png")
    return root


def image_of(root: Path, mode: str = "RGB") -> Image.Image:
    image = Image.open(next((root / "all").iterdir())).convert("RGB")
    return image.resize(SIZE[::-1], Image.Resampling.BILINEAR).convert(mode)


def dataset_of(root: Path, *chain: Any) -> Any:
    return vision.datasets.ImageFolder(root, v1.Compose(list(chain)))


def drawn(root: Path, *chain: Any) -> collections.Counter[bytes]:
    """Returns the engine's results for the image, drawn DRAWS times."""
    loader = DataLoader(dataset_of(root, v1.Resize(SIZE), *chain, v1.PILToTensor()), 500, sampler=[0] * DRAWS, seed=3)
    assert plan_of(loader) == "images", loader.explain()
    return collections.Counter(image.numpy().tobytes() for images, _ in loader for image in images)


def pixels(image: Image.Image) -> bytes:
    return v1.functional.pil_to_tensor(image).contiguous().numpy().tobytes()


def assert_drawn_as(found: collections.Counter[bytes], outcomes: Outcomes) -> None:
    assert not found.keys() - outcomes.keys(), "the engine makes what torchvision does not"
    total = found.total()
    likely = [key for key, probability in outcomes.items() if probability * total >= 5]
    observed = [found[key] for key in likely]
    expected = [outcomes[key] * total for key in likely]
    observed.append(total - sum(observed))
    expected.append(total - sum(expected))
    if expected[-1] < 1e-6:
        assert observed.pop() == 0
        expected.pop()
    if len(expected) > 1:
        assert chisquare(observed, expected).pvalue > 1e-4


def mixed(parts: list[tuple[float, Outcomes]]) -> Outcomes:
    outcomes: Outcomes = collections.Counter()
    for weight, part in parts:
        for key, probability in part.items():
            outcomes[key] += weight * probability
    return outcomes
