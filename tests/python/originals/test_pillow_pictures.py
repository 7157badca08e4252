# SPDX-License-Identifier: Apache-2.0
"""Pillow's own test images: the same pixels as in Pillow or, if Pillow refuses the image, an error. All differences are
listed here and, with their reasons, in docs/known-differences.md.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import feedline

# the supported kinds, by Pillow's names
READ = {"AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "MPO", "PNG", "PPM", "PSD", "TIFF", "WEBP"}
ONLY_PILLOW_READS = {
    "hopper_bad_exif.jpg",  # its Huffman codes are damaged: Pillow continues with grey and black
    "hopper.pfm", "hopper_be.pfm",  # floats, which Pillow counts as PPM
}  # fmt: skip
ONLY_FEEDLINE_READS = {
    "apng/chunk_no_fctl.png",  # unordered frames of an APNG: the first image is complete
    "png_decompression_dos.png", "unknown_compression_method.png",  # text and profiles, which Feedline ignores
    "truncated_end_chunk.png", "truncated_jpeg.jpg",  # only the end mark is missing
}  # fmt: skip

# orientation in XMP, and in a text chunk in which a program stored EXIF (docs/decisions/decode-png-and-other-images.md)
TURNED_BY_PILLOW_ALONE = {
    "exif_imagemagick_orientation.png", "xmp_tags_orientation.png", "xmp_tags_orientation_exiftool.png"
}  # fmt: skip


def pictures() -> Iterator[tuple[str, bytes]]:
    made = os.environ.get("FEEDLINE_ORIGINALS")
    if made is None:
        pytest.skip("needs Pillow's source: tools/test --formats downloads it")
    folder = Path(made, "pillow_pictures")
    if not folder.is_dir():
        pytest.skip("Pillow's source could not be downloaded")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()


def pillow(data: bytes, mode: str) -> np.ndarray | None:
    """Returns the pixels, or None if the image is refused with any error."""
    try:
        image = Image.open(io.BytesIO(data))
        return np.asarray(image.convert(mode)).reshape(image.height, image.width, -1)
    except Exception:
        return None


def ours(data: bytes, mode: str, box: tuple[int, int, int, int] | None = None) -> np.ndarray | None:
    try:
        return feedline.decode_image(data, box, mode=mode)
    except feedline.DataError:
        return None


def kind_of(data: bytes) -> str | None:
    try:
        return Image.open(io.BytesIO(data)).format
    except Exception:
        return None


def assert_same(name: str, data: bytes, mode: str) -> tuple[bool, bool]:
    """Returns who can read it: Pillow, Feedline."""
    expected, found = pillow(data, mode), ours(data, mode)
    if expected is not None and found is not None:
        assert np.array_equal(found, expected), (name, mode)
        height, width = expected.shape[:2]
        left, top, right, bottom = box = (width // 3, height // 4, width, height // 2 + 1)
        assert np.array_equal(ours(data, mode, box), expected[top:bottom, left:right]), (name, mode, box)
    return expected is not None, found is not None


def test_pixels_and_refusals_are_pillows() -> None:
    counts = dict.fromkeys(sorted(READ), 0)
    refused = 0
    only_pillow, only_feedline = set(), set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about damage that Pillow tolerates
        for name, data in pictures():
            kind = kind_of(data)
            if kind is not None and kind not in READ:
                assert ours(data, "RGB") is None, (name, kind)
                continue
            for mode in ("RGB", "L"):
                theirs, mine = assert_same(name, data, mode)
                if theirs and not mine:
                    only_pillow.add(name)
                if mine and not theirs:
                    only_feedline.add(name)
            if kind is not None and theirs and mine:
                counts[kind] += 1
            refused += not theirs and not mine
    assert only_pillow == ONLY_PILLOW_READS
    assert only_feedline == ONLY_FEEDLINE_READS
    assert all(counts.values()), counts
    print(f"equal to Pillow's: {counts}, refused by both: {refused}")


def test_turned_pictures_are_those_of_exif_transpose() -> None:
    from PIL import ImageOps

    other, turned = set(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in pictures():
            if kind_of(data) not in ("JPEG", "PNG", "WEBP", "TIFF") or ours(data, "RGB") is None:
                continue
            found = feedline.decode_image(data, apply_exif_orientation=True)
            image = Image.open(io.BytesIO(data))
            try:
                expected = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
            except Exception:
                continue  # Pillow refuses the image, or its EXIF
            if not np.array_equal(found, expected):
                other.add(name)
            turned += image.getexif().get(0x0112, 1) != 1
    assert other == TURNED_BY_PILLOW_ALONE
    assert turned > 5
