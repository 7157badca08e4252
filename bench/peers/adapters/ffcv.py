# SPDX-License-Identifier: Apache-2.0
"""FFCV with its own files. Variants: jpg (encoded photos), raw (decoded pixels). It decodes whole photos, downscales by
area, and compiles its pipeline when the first epoch begins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder
from ffcv.fields.rgb_image import CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from PIL import Image
from work import MEAN, SHORTER, SIZE, STD, Work

DISTRIBUTIONS = ("ffcv", "torch", "numba", "numpy", "opencv-python")
_QUALITY = 96  # quality of re-encoded photos, with which they have about their original size


class _Folder:
    def __init__(self, work: Work) -> None:
        self.paths, self.labels = work.files()

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        with Image.open(self.paths[index]) as image:
            return np.array(image.convert("RGB")), self.labels[index]


def _file(work: Work) -> Path:
    return work.made_file(f"{Path(work.folder).name}-{work.variant}.beton")


def prepare(work: Work) -> None:
    path = _file(work)
    if path.exists():
        return
    part = path.with_suffix(".part")
    field = RGBImageField(write_mode=work.variant, jpeg_quality=_QUALITY)
    DatasetWriter(str(part), {"image": field, "label": IntField()}, num_workers=1).from_indexed_dataset(_Folder(work))
    os.replace(part, path)


def make(work: Work) -> Any:
    decoder: Any = CenterCropRGBImageDecoder((SIZE, SIZE), ratio=SIZE / SHORTER)
    image: list[Any] = [decoder]
    if work.train:
        image = [RandomResizedCropRGBImageDecoder((SIZE, SIZE)), RandomHorizontalFlip()]
    if work.floating:
        image.append(NormalizeImage(255 * np.array(MEAN), 255 * np.array(STD), np.float32))
    loader = Loader(
        str(_file(work)),
        batch_size=work.batch,
        num_workers=work.threads,
        os_cache=True,
        order=OrderOption.RANDOM if work.train else OrderOption.SEQUENTIAL,
        seed=0,
        drop_last=True,
        pipelines={"image": [*image, ToTensor(), ToTorchImage()], "label": [IntDecoder(), ToTensor(), Squeeze()]},
    )

    def epoch() -> Iterator[Any]:
        for images, _labels in loader:
            yield images

    return epoch
