# SPDX-License-Identifier: Apache-2.0
"""Real photos without a download: from FEEDLINE_PHOTOS (a folder), or those in scikit-image and scikit-learn.

Only their files are used; the two packages are not imported.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

# only photographs, not the drawings and charts in the same folder
_SCIKIT_IMAGE = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "coffee.png", "coins.png", "grass.png", "gravel.png",
    "hubble_deep_field.jpg", "ihc.png", "motorcycle_left.png", "motorcycle_right.png", "retina.jpg", "rocket.jpg",
)  # fmt: skip
_SCIKIT_LEARN = ("china.jpg", "flower.jpg")


def files() -> list[Path]:
    """Returns at least one photo, or skips the calling test."""
    found = _users() or _shipped("skimage", "data", _SCIKIT_IMAGE) + _shipped(
        "sklearn", "datasets/images", _SCIKIT_LEARN
    )
    if not found:
        pytest.skip("no photos: install scikit-image or scikit-learn, or set FEEDLINE_PHOTOS to a folder of photos")
    return found


def crops(count: int, largest: int = 640) -> list[np.ndarray]:
    """Returns `count` different crops of the photos, RGB uint8, of random sizes including odd ones; always the same."""
    from PIL import Image

    rng = np.random.default_rng(20240607)
    photos = [np.asarray(Image.open(path).convert("RGB")) for path in files()[:64]]
    parts = []
    for i in range(count):
        photo = photos[i % len(photos)]
        height = int(rng.integers(40, min(largest, photo.shape[0]) + 1))
        width = int(rng.integers(40, min(largest, photo.shape[1]) + 1))
        top = int(rng.integers(0, photo.shape[0] - height + 1))
        left = int(rng.integers(0, photo.shape[1] - width + 1))
        parts.append(np.ascontiguousarray(photo[top : top + height, left : left + width]))
    return parts


def _users() -> list[Path]:
    folder = os.environ.get("FEEDLINE_PHOTOS")
    suffixes = {".jpg", ".jpeg", ".png"}
    return sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in suffixes) if folder else []


def _shipped(package: str, folder: str, names: tuple[str, ...]) -> list[Path]:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return []
    return [path for name in names if (path := Path(spec.origin).parent / folder / name).is_file()]
