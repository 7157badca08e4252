# SPDX-License-Identifier: Apache-2.0
"""Small data for the cases, made on first use below the current folder in `data`, and shortcuts to use it."""

from __future__ import annotations

import base64
import functools
import struct
import zlib
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest

import feedline

# 60 x 50 pixels. The bytes are stored, since messages have sizes and offsets, which differ between encoders.
_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI////////////////////////////////"
    "////////////////////////2wBDAVVaWnhpeOuCguv/////////////////////////////////////////////////////////////"
    "////////////wAARCAAyADwDASIAAhEBAxEB/8QAGAABAQEBAQAAAAAAAAAAAAAAAQACAwT/xAAVEAEBAAAAAAAAAAAAAAAAAAAA"
    "Ef/EABgBAQEBAQEAAAAAAAAAAAAAAAECBAAD/8QAFhEBAQEAAAAAAAAAAAAAAAAAAAER/9oADAMBAAIRAxEAPwDywwwx6aJRDDDB"
    "q5RDDDBq5RDDDBq5XOGGGHWOUQwwwauUQwwwauURRqGDVyuUMahjtY5WYY1DBq5WYY1DBq5WYY1FBq5XIpKZISkFwlILhKQXH//Z"
)


class Samples:
    """Paths are relative to the current folder, so that messages have the same ones in every run.

    A case may write into the folder `here`, which is empty when it begins, and use `patch`, which is undone after it.
    """

    patch: pytest.MonkeyPatch

    def __init__(self, root: Path) -> None:
        self.root = root

    # ---- sources ----

    @functools.cached_property
    def folder(self) -> Path:
        """Six images in three class folders."""
        root = Path("data/train")
        for number in range(6):
            path = root / made_data.CLASSES[number // 2] / f"{number % 2:03d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jpeg(number))
        return root

    @functools.cached_property
    def shards(self) -> list[Path]:
        """The same images in two tars, with members .jpg and .cls."""
        return made_data.make_tars(self.folder, Path("data/tars"), shards=2)

    jpeg = _JPEG

    @functools.cached_property
    def png(self) -> bytes:
        """30 x 20 pixels in colour."""
        return png(20, 30, 3)

    # ---- datasets ----

    @functools.cached_property
    def images(self) -> feedline.Dataset:
        return feedline.open(self.folder)

    @functools.cached_property
    def small(self) -> feedline.Dataset:
        """The images in one size."""
        return self.images.resize((8, 8))

    @functools.cached_property
    def tar(self) -> feedline.Dataset:
        return feedline.open(self.shards[0])

    @functools.cached_property
    def numbers(self) -> feedline.Dataset:
        """Six rows of arrays."""
        return feedline.arrays(x=np.arange(12, dtype=np.float32).reshape(6, 2), y=np.arange(6) % 3)

    @functools.cached_property
    def lengths(self) -> feedline.Dataset:
        """Samples of 1 to 6 numbers."""
        return feedline.arrays(x=feedline.ragged([np.zeros(n, np.float32) for n in range(1, 7)]), y=np.arange(6))

    # ---- writing ----

    def write(self, name: str, content: bytes | str) -> Path:
        """Writes a file in `here`."""
        path = Path("here") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def write_tar(self, *members: tuple[str, bytes | str], name: str = "a.tar") -> Path:
        encoded = [(key, data.encode() if isinstance(data, str) else data) for key, data in members]
        return made_data.write_tar(Path("here") / name, encoded)

    def read_tar(self, *members: tuple[str, bytes | str], **options: Any) -> object:
        """Opens a tar of these members, and reads its first sample."""
        return feedline.open(self.write_tar(*members), **options)[0]

    def table(self, name: str, text: bytes | str, **options: Any) -> object:
        """Writes a table, opens it with `options`, and reads its first sample."""
        return feedline.open(self.write(name, text), **options)[0]


def read(dataset: feedline.Dataset, **options: Any) -> None:
    """Reads all batches of two samples."""
    with dataset.loader(**{"batch_size": 2, "output": "numpy", "num_workers": 1, **options}) as loader:
        for _ in loader:
            pass


def jpeg(number: int) -> bytes:
    """The image with a comment, so that no two files are the same."""
    return _JPEG[:2] + b"\xff\xfe\x00\x04%02d" % number + _JPEG[2:]


def png(height: int, width: int, channels: int, bits: int = 8) -> bytes:
    """An image of zeros, not compressed."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = bytes(1 + width * channels * bits // 8) * height
    stored = b"\x78\x01\x01" + struct.pack("<HH", len(rows), len(rows) ^ 0xFFFF) + rows
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    data = stored + struct.pack(">I", zlib.adler32(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
