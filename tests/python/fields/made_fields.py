# SPDX-License-Identifier: Apache-2.0
"""Samples with many fields, as a tar and as a folder of the same files, and their values according to Pillow, NumPy and
json.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from made_data import encoded, photo, write_tar
from PIL import Image

EXTENSIONS = ("left.jpg", "right.jpg", "mask.png", "boxes.npy", "json", "txt", "cls")
PATTERNS = (
    "left/{key}.jpg",
    "right/{key}.jpg",
    "masks/{key}.png",
    "boxes/{key}.npy",
    "about/{key}.json",
    "captions/{key}.txt",
    "label=labels/{key}.cls",
)


def palette_png(labels: np.ndarray) -> bytes:
    """Labels as indices of a palette, as in PASCAL VOC and ADE20K."""
    image = Image.fromarray(labels.astype(np.uint8), "P")
    image.putpalette([value * 37 % 256 for value in range(768)])
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def sample(number: int, width: int = 60, height: int = 48) -> dict[str, bytes]:
    """Returns the files of a sample, by extension."""
    rng = np.random.default_rng(number)
    left, right = photo(2 * number, width, height), photo(2 * number + 1, width, height)
    about = {"id": number, "name": "grüß dich", "scores": [1.5, None, {"deep": [number]}]}
    return {
        "left.jpg": encoded(left, quality=90),
        "right.jpg": encoded(right, quality=90),
        "mask.png": palette_png(rng.integers(0, 21, (height, width))),
        "boxes.npy": npy(rng.random((number % 4, 4)).astype(np.float32)),
        "json": json.dumps(about, ensure_ascii=number % 2 == 0).encode(),
        "txt": f"caption {number}: ü".encode(),
        "cls": str(number % 5).encode(),
    }


def make_tar(path: Path, samples: Sequence[Mapping[str, bytes]]) -> Path:
    write_tar(path, [(f"{key(i)}.{name}", data) for i, files in enumerate(samples) for name, data in files.items()])
    return path


def make_folder(root: Path, samples: Sequence[Mapping[str, bytes]]) -> Path:
    for i, files in enumerate(samples):
        for name, data in files.items():
            pattern = PATTERNS[EXTENSIONS.index(name)].partition("=")[2] or PATTERNS[EXTENSIONS.index(name)]
            path = root / pattern.replace("{key}", key(i))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return root


def key(number: int) -> str:
    return f"{number:04d}"


def mask_of(files: Mapping[str, bytes]) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(files["mask.png"])))


def image_of(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def nearest(labels: np.ndarray, height: int, width: int) -> np.ndarray:
    """torch's interpolate(mode="nearest"), which torchvision uses for masks: floor(i * (in / out)) in float32."""

    def places(into: int, of: int) -> Any:
        scale = np.float32(of) / np.float32(into)
        return np.minimum(np.floor(np.arange(into, dtype=np.float32) * scale).astype(int), of - 1)

    return labels[places(height, labels.shape[0])[:, None], places(width, labels.shape[1])[None, :]]
