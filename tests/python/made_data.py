# SPDX-License-Identifier: Apache-2.0
"""Datasets for the tests: small generated photos, as class folders and as tars of the same files."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np

CLASSES = ("apple", "birch", "crow")


def photo(seed: int, width: int, height: int) -> np.ndarray:
    """Smooth colours with some noise: it compresses like a photo, and no two are alike."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / max(width, height)
    waves = [np.sin(x * rng.uniform(3, 20) + y * rng.uniform(3, 20) + rng.uniform(0, 6)) for _ in range(3)]
    return np.clip(np.stack(waves, -1) * 100 + 128 + rng.normal(0, 6, (height, width, 3)), 0, 255).astype(np.uint8)


def encoded(pixels: np.ndarray, format: str = "JPEG", **options: object) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format, **options)
    return stream.getvalue()


def large_photo(seed: int, width: int, height: int, noise: int, quality: int, **options: object) -> bytes:
    """Returns a JPEG with coarse shapes and with noise of at most this many levels, as a photo has."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (height // 20, width // 20, 3), dtype=np.uint8))
    pixels = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
    pixels = pixels + rng.integers(-noise, noise + 1, (height, width, 1), dtype=np.int16)
    return encoded(pixels.clip(0, 255).astype(np.uint8), quality=quality, **options)


def make_folder(root: Path, per_class: int = 7) -> Path:
    """`per_class` JPEGs of differing sizes in each of three classes; keys "apple/000.jpg" and so on."""
    for label, name in enumerate(CLASSES):
        (root / name).mkdir(parents=True)
        for i in range(per_class):
            seed = label * per_class + i
            pixels = photo(seed, 60 + 7 * (seed % 5), 50 + 5 * (seed % 7))
            (root / name / f"{i:03d}.jpg").write_bytes(encoded(pixels, quality=90))
    return root


def make_uneven_folder(root: Path, count: int) -> Path:
    """Photos in three classes, all of different sizes, from 320 x 240."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(count):
        folder = root / f"class{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(rng.integers(0, 255, (12, 16, 3), np.uint8)).resize((320 + number, 240 + 2 * number))
        picture.save(folder / f"{number:03}.jpg", quality=90)
    return root


def make_tars(folder: Path, root: Path, shards: int = 1) -> list[Path]:
    """Writes the files of `folder` in its order to `shards` tars, with a .cls member next to each image."""
    root.mkdir(parents=True, exist_ok=True)
    files = sorted(folder.glob("*/*.jpg"))
    paths = []
    for shard in range(shards):
        path = root / f"{shard:03d}.tar"
        share = files[shard * len(files) // shards : (shard + 1) * len(files) // shards]
        members = [member for file in share for member in _members(file)]
        write_tar(path, members)
        paths.append(path)
    return paths


def _members(file: Path) -> list[tuple[str, bytes]]:
    key = f"{file.parent.name}_{file.stem}"
    label = str(CLASSES.index(file.parent.name))
    return [(f"{key}.jpg", file.read_bytes()), (f"{key}.cls", label.encode())]


def write_tar(path: Path, members: list[tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path
