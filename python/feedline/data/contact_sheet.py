# SPDX-License-Identifier: Apache-2.0
"""A sheet of small pictures, decoded by the engine, and a PNG writer for it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Error
from .images import decode_image, resize_image

if TYPE_CHECKING:
    from .dataset import Dataset

_CELL = 160  # pixels; a picture's longer side
_GAP = 6
_COLUMNS = 6
_BACKGROUND = 32
_DAMAGED = (160, 24, 24)

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def contact_sheet(dataset: Dataset, images: int, step: Callable[[], None]) -> tuple[Pixels, list[str]]:
    """Evenly spread samples of `dataset`, in order: an (H, W, 3) uint8 sheet, and the errors of damaged samples.

    A damaged sample is a red cell. `step` is called after each image.
    """
    count = min(images, len(dataset))
    picked = [i * len(dataset) // count for i in range(count)]
    columns = min(_COLUMNS, count)
    rows = -(-count // columns)
    pitch = _CELL + _GAP
    sheet = np.full((rows * pitch + _GAP, columns * pitch + _GAP, 3), _BACKGROUND, np.uint8)
    damaged: list[str] = []
    for cell, index in enumerate(picked):
        top, left = (cell // columns) * pitch + _GAP, (cell % columns) * pitch + _GAP
        try:
            picture = _picture(dataset, index)
        except Error as error:
            damaged.append(f"{dataset.key(index)}: {error}")
            sheet[top : top + _CELL, left : left + _CELL] = _DAMAGED
        else:
            height, width = picture.shape[:2]
            top += (_CELL - height) // 2
            left += (_CELL - width) // 2
            sheet[top : top + height, left : left + width] = picture
        step()
    return sheet, damaged


def _picture(dataset: Dataset, index: int) -> Pixels:
    if dataset.format != "pixels":
        return _thumbnail(decode_image(dataset.encoded(index)))
    sample = dataset.resize(_CELL).center_crop(_CELL).sample(index)  # its middle
    planes: Pixels = next(field for field in sample if np.ndim(field) == 3)
    return planes.transpose(1, 2, 0)


def _thumbnail(picture: Pixels) -> Pixels:
    height, width = picture.shape[:2]
    scale = _CELL / max(height, width)
    size = (max(1, round(height * scale)), max(1, round(width * scale)))
    return resize_image(picture, size)


def write_png(path: Path, pixels: Pixels) -> None:
    """Writes an (H, W, 3) uint8 array as PNG (W3C PNG specification, section 5: chunks; filter 0 on each row)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # a filter byte before each row
    rows[:, 1:] = pixels.reshape(height, 3 * width)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
        + chunk(b"IEND", b"")
    )
