# SPDX-License-Identifier: Apache-2.0
"""Measures torch's DataLoader over the same folder, with torchvision's transforms or equivalent transforms on
Pillow.
"""

from __future__ import annotations

import importlib.util
import math
import random
import resource
import time
from pathlib import Path
from typing import Any

from feedline.data.image_formats import IMAGE_FOLDER_EXTENSIONS
from feedline.machine.storage import local_path

from ..imagenet import IMAGENET_MEAN, IMAGENET_STD

_EXTENSIONS = tuple(f".{extension}" for extension in IMAGE_FOLDER_EXTENSIONS)


class StockLoaderMissing(Exception):
    """A package required for the comparison is missing."""


def crop_box(width: int, height: int) -> tuple[int, int, int, int]:
    """Equals torchvision's RandomResizedCrop.get_params with its defaults; returns left, top, width, height."""
    area = width * height
    for _ in range(10):
        target = area * random.uniform(0.08, 1.0)
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


class PillowTransform:
    """Applies random_resized_crop, flip, to_tensor and normalize to a Pillow image, like torchvision."""

    def __init__(self, size: int) -> None:
        import torch

        self.size = size
        self.mean = torch.tensor(IMAGENET_MEAN)[:, None, None]
        self.std = torch.tensor(IMAGENET_STD)[:, None, None]

    def __call__(self, image: Any) -> Any:
        import numpy as np
        import torch
        from PIL import Image

        left, top, width, height = crop_box(*image.size)
        image = image.crop((left, top, left + width, top + height)).resize(
            (self.size, self.size), Image.Resampling.BILINEAR
        )
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().to(torch.float32).div_(255)
        return pixels.sub_(self.mean).div_(self.std)


class FolderDataset:
    """Reads class folders with Pillow, like torchvision's ImageFolder."""

    def __init__(self, root: str, transform: Any) -> None:
        self.transform = transform
        classes = sorted(path.name for path in Path(root).iterdir() if path.is_dir())
        self.samples = [
            (str(path), label)
            for label, name in enumerate(classes)
            for path in sorted(Path(root, name).rglob("*"))
            if path.suffix.lower() in _EXTENSIONS
        ]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        path, label = self.samples[index]
        with Image.open(path) as image:
            return self.transform(image.convert("RGB")), label


def transform_of(size: int, preferred: str = "any") -> tuple[Any, str]:
    """Returns the transform and its name; `preferred` is "pillow" for Feedline's transforms on Pillow, or "any" for
    torchvision's transforms if torchvision can be imported.
    """
    if preferred == "pillow":
        return PillowTransform(size), "Pillow transforms"
    try:
        from torchvision import transforms
    except Exception:  # torchvision raises various exceptions if its library cannot be loaded
        return PillowTransform(size), "Pillow transforms"
    steps = [
        transforms.RandomResizedCrop(size),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(IMAGENET_MEAN, IMAGENET_STD),
    ]
    return transforms.Compose(steps), "torchvision transforms"


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(entry.ru_utime + entry.ru_stime for entry in used)


def check_stock(source: str) -> None:
    """Raises :class:`StockLoaderMissing` if :func:`measure_stock` could not run; imports nothing."""
    for name in ("PIL", "torch"):
        if importlib.util.find_spec(name) is None:
            raise StockLoaderMissing(f"needs {name}")
    if not Path(local_path(source)).is_dir():
        raise StockLoaderMissing(f"SOURCE must be a folder of class folders, not {source!r}")


def measure_stock(source: str, size: int, batch_size: int, workers: int, seconds: float) -> dict[str, Any]:
    """Returns the throughput of torch's DataLoader over the folder `source`, in images per second, after a warm-up of
    half of `seconds`.
    """
    try:
        import PIL.Image  # noqa: F401
        import torch.utils.data as data
    except ImportError as error:  # it is installed, but cannot be loaded
        raise StockLoaderMissing(f"needs {error.name or 'torch'}: {error}") from error
    transform, name = transform_of(size)
    dataset: Any = FolderDataset(local_path(source), transform)
    loader = data.DataLoader(dataset, batch_size=batch_size, shuffle=True, num_workers=workers, persistent_workers=True)
    cpu = _cpu_s()
    total = 0
    batches = _batches(loader)
    started = time.perf_counter()
    total += len(next(batches)[1])
    first_batch_s = time.perf_counter() - started
    while time.perf_counter() - started < seconds / 2:
        total += len(next(batches)[1])
    images = 0
    started = time.perf_counter()
    while (wall := time.perf_counter() - started) < seconds or images == 0:
        images += len(next(batches)[1])
    del batches, loader  # stops the workers, so that their CPU time is counted
    return {
        "transforms": name,
        "workers": workers,
        "images": images,
        "images_per_s": images / wall,
        "cpu_s_per_1000_images": 1000 * (_cpu_s() - cpu) / (total + images),
        "first_batch_s": first_batch_s,
    }


def _batches(loader: Any) -> Any:
    while True:
        yield from loader
