# SPDX-License-Identifier: Apache-2.0
"""Determines whether an image file is stored in RGB, for classes that do not convert images."""

from __future__ import annotations

import os
import struct
from typing import IO

from ....data import image_formats

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # JPEG markers that are followed by the image's size
_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xD8)))
_MOST_MARKERS = 200  # a JPEG with more before its size is read by the dataset
_RGB = 2  # a PNG's colour type


def is_stored_as_rgb(path: str | bytes | os.PathLike[str]) -> bool:
    """Returns whether this file is a JPEG or PNG that Pillow opens in mode RGB."""
    try:
        with open(path, "rb") as file:
            head = file.read(26)
            found = image_formats.of(head)
            if found is not None and found.name == "png":
                return len(head) == 26 and head[24] == 8 and head[25] == _RGB
            return found is not None and found.name == "jpeg" and _components(file) == 3
    except OSError:
        return False


def _components(file: IO[bytes]) -> int:
    """Returns the number of colour components of a JPEG; 0 if it was not found."""
    file.seek(2)
    for _ in range(_MOST_MARKERS):
        head = file.read(2)
        if len(head) < 2 or head[0] != 0xFF:
            return 0
        if head[1] == 0xFF:  # a fill byte
            file.seek(-1, os.SEEK_CUR)
            continue
        if head[1] in _WITHOUT_LENGTH:
            continue
        length = file.read(2)
        if len(length) < 2:
            return 0
        if head[1] in _FRAMES:
            frame = file.read(6)
            return frame[5] if len(frame) == 6 and frame[0] == 8 else 0
        file.seek(struct.unpack(">H", length)[0] - 2, os.SEEK_CUR)
    return 0
