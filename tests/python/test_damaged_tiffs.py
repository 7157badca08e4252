# SPDX-License-Identifier: Apache-2.0
"""TIFFs whose tags contradict the file: errors that name the file and the tag, within bounds of memory."""

from __future__ import annotations

import resource
import struct
import zlib
from pathlib import Path

import made_tiff
import numpy as np
import pytest

import feedline
from feedline.errors import DataError

PIXELS = (np.arange(40 * 50).reshape(40, 50) * 31).astype(np.uint16)
TILES = made_tiff.Layout(made_tiff.DEFLATE, 2, tile=(16, 16))
STRIPS = made_tiff.Layout(made_tiff.NONE)


def read(folder: Path, file: bytes) -> np.ndarray:
    (folder / "a").mkdir()
    (folder / "a" / "scan.tif").write_bytes(file)
    return feedline.open(str(folder)).decode(dtype="native")[0][0]


def entry_of(file: bytes, tag: int) -> int:
    """Returns the offset of a tag's entry in the first directory of a little-endian file."""
    (at,) = struct.unpack_from("<I", file, 4)
    (count,) = struct.unpack_from("<H", file, at)
    for i in range(count):
        if struct.unpack_from("<H", file, at + 2 + 12 * i)[0] == tag:
            return int(at + 2 + 12 * i)
    raise AssertionError(f"the file has no tag {tag}")


def changed(layout: made_tiff.Layout, tag: int, value: int, index: int | None = None) -> bytes:
    """Returns a file with another value of a tag; index: of the value, in a tag with an array."""
    file = bytearray(made_tiff.tiff(PIXELS, layout))
    at = entry_of(file, tag)
    kind, count = struct.unpack_from("<HI", file, at + 2)
    if index is not None:
        (at,) = struct.unpack_from("<I", file, at + 8)
        struct.pack_into("<I", file, at + 4 * index, value)
    elif count == 1:
        struct.pack_into("<H" if kind == 3 and value < 65536 else "<I", file, at + 8, value)
    return bytes(file)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (changed(TILES, 324, 10**9, 5), r"tile 5 is at byte 1000000000 .*\(TileOffsets, TileByteCounts\), outside"),
        (changed(TILES, 325, 10**9, 2), r"tile 2 .* with 1000000000 bytes \(TileOffsets, TileByteCounts\), outside"),
        (changed(STRIPS, 273, 10**9, 1), r"strip 1 is at byte 1000000000 .*\(StripOffsets, StripByteCounts\)"),
        (changed(STRIPS, 279, 10, 1), r"strip 1 has 10 bytes of values instead of 700"),
        (changed(TILES, 322, 2**31 - 1), r"(tile|TileOffsets|TileWidth)"),
        (changed(TILES, 322, 0), r"TileWidth is 0"),
        (changed(TILES, 322, 8), r"TileOffsets has 12 values for 21 tiles"),
        (changed(TILES, 323, 2**31 - 1), r"tile 0 has 16 x 2147483647 pixels, over the limit"),
        (changed(TILES, 256, 2**31 - 1), r"TileOffsets has 12 values"),
        (changed(TILES, 257, 0), r"ImageLength is 0"),
        (changed(STRIPS, 256, 10**8), r"(strip 0|limit)"),
        (changed(STRIPS, 278, 0), r"RowsPerStrip is 0"),
        (changed(TILES, 277, 5000), r"SamplesPerPixel 5000 is not supported"),
        (changed(TILES, 258, 12), r"BitsPerSample 12 is not supported"),
        (changed(TILES, 339, 5), r"SampleFormat 5 is not supported"),
        (changed(TILES, 259, 34712), r"Compression 34712 is not supported"),
        (changed(TILES, 317, 9), r"Predictor 9 is not supported"),
        (changed(TILES, 317, 3), r"Predictor 3 is not supported"),
        (made_tiff.tiff(PIXELS, TILES)[:200], r"(truncated|damaged) TIFF"),
        (b"II*\0", r"truncated TIFF: 4 bytes"),
        (b"II*\0\xff\xff\xff\x7f", r"the directory of page 0, at byte 2147483647, is not in the file"),
    ],
)
def test_errors_name_the_file_and_the_tag(tmp_path: Path, file: bytes, message: str) -> None:
    with pytest.raises(DataError, match=rf"{message}[\s\S]*scan\.tif"):
        read(tmp_path, file)


def test_data_that_inflates_beyond_its_tile(tmp_path: Path) -> None:
    file = bytearray(made_tiff.tiff(PIXELS, TILES))
    bomb = zlib.compress(bytes(10_000))
    offsets, counts = (struct.unpack_from("<I", file, entry_of(file, tag) + 8)[0] for tag in (324, 325))
    struct.pack_into("<I", file, offsets + 4 * 3, len(file))
    struct.pack_into("<I", file, counts + 4 * 3, len(bomb))
    with pytest.raises(DataError, match=r"tile 3 holds more than its 512 bytes of values"):
        read(tmp_path, bytes(file) + bomb)


def test_damaged_data(tmp_path: Path) -> None:
    for number, compression in enumerate((made_tiff.LZW, made_tiff.DEFLATE)):
        file = bytearray(made_tiff.tiff(PIXELS, made_tiff.Layout(compression, rows=40)))
        file[8:200] = b"\xff" * 192
        (tmp_path / str(number)).mkdir()
        with pytest.raises(DataError, match=r"damaged TIFF: strip 0"):
            read(tmp_path / str(number), bytes(file))


def test_tiles_that_are_not_stored_are_zeros(tmp_path: Path) -> None:
    image = read(tmp_path, changed(TILES, 325, 0, 0))
    assert not image[0, :16, :16].any()
    np.testing.assert_array_equal(image[0, :, 16:], PIXELS[:, 16:])


def test_absurd_sizes_take_no_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number, (tag, value) in enumerate(((256, 10**8), (257, 10**8), (322, 10**6), (323, 10**6))):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(DataError):
            read(tmp_path / str(number), changed(TILES, tag, value))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB
