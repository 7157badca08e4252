# SPDX-License-Identifier: Apache-2.0
"""PNGs of all kinds in PngSuite: Pillow's pixels, for the whole image and for regions, or the same refusal."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace

import made_png
import numpy as np
import pytest
from made_png import DEPTHS, GREY, PALETTE, RGB, RGBA, Kind, palette, png
from PIL import Image

import feedline


def with_palette(kind: Kind, entries: int | None = None) -> Kind:
    return replace(kind, chunks=[palette(entries or 1 << kind.depth), *kind.chunks]) if kind.color == PALETTE else kind


def basic() -> Iterator[Kind]:
    """PngSuite's "basic formats" and "interlacing", each with every filter."""
    for color, depths in DEPTHS.items():
        for depth in depths:
            for interlaced in (False, True):
                yield with_palette(Kind(color, depth, 37, 29, interlaced))


def odd_sizes() -> Iterator[Kind]:
    """Sides of 1 to 9 and 32 to 40, for which some passes of interlacing are empty."""
    for side in (*range(1, 10), *range(32, 41)):
        for interlaced in (False, True):
            yield with_palette(Kind(PALETTE, (1, 2, 4, 8)[side % 4], side, side, interlaced))
            yield Kind(RGB, 8, side, 41 - side, interlaced)


def filters() -> Iterator[Kind]:
    for how in range(5):
        for color in (GREY, RGB, RGBA):
            for depth in (8, 16):
                yield Kind(color, depth, 65, 20, filters=(how,))


def chunked_and_compressed() -> Iterator[Kind]:
    for idat in (1, 7, 500):
        yield Kind(RGB, 8, idat=idat)
    for level in (0, 1, 3, 6, 9):
        yield Kind(RGB, 8, level=level)


def with_chunks() -> Iterator[Kind]:
    """Transparency, background and gamma, which convert() ignores, and palettes that are too short."""
    clear = (b"tRNS", bytes([0, 128, 200]))
    gamma, background = (b"gAMA", (45455).to_bytes(4, "big")), (b"bKGD", bytes(6))
    yield Kind(RGB, 8, chunks=[gamma, background])
    yield Kind(RGB, 8, chunks=[(b"tRNS", bytes([0, 1, 0, 2, 0, 3]))])
    yield Kind(RGB, 8, chunks=[palette(9)])  # a suggestion
    yield Kind(GREY, 8, chunks=[(b"tRNS", bytes([0, 7]))])
    yield Kind(GREY, 16, chunks=[(b"tRNS", bytes([0, 7]))])
    for depth in DEPTHS[PALETTE]:
        yield Kind(PALETTE, depth, chunks=[palette(1 << depth), clear][: 1 + (depth > 1)])
        yield with_palette(Kind(PALETTE, depth), entries=max(1, (1 << depth) * 2 // 3))


KINDS = [*basic(), *odd_sizes(), *filters(), *chunked_and_compressed(), *with_chunks()]


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_pixels_are_pillows(mode: str) -> None:
    for kind in KINDS:
        data = png(kind)
        expected = np.asarray(Image.open(io.BytesIO(data)).convert(mode)).reshape(kind.height, kind.width, -1)
        assert np.array_equal(feedline.decode_image(data, mode=mode), expected), kind.name
        box = (kind.width // 3, kind.height // 4, kind.width, kind.height // 2 + 1)
        part = feedline.decode_image(data, box, mode=mode)
        assert np.array_equal(part, expected[box[1] : box[3], box[0] : box[2]]), kind.name


def test_what_is_no_png_is_refused_by_both() -> None:
    good = png(Kind(RGB, 8))
    plain = Kind(RGB, 8)
    header = good.index(b"IHDR") + 4

    def with_header(at: int, value: int) -> bytes:
        changed = bytearray(good[header : header + 13])
        changed[at] = value
        return good[: header - 8] + made_png.chunk(b"IHDR", bytes(changed)) + good[header + 17 :]

    refused = {
        "no signature": b"\x89PNX" + good[4:],
        "no data": good[: good.index(b"IDAT") - 4] + made_png.chunk(b"IEND", b""),
        "color 1": with_header(9, 1),
        "3 bits": with_header(8, 3),
        "a filter that does not exist": png(replace(plain, filters=(1, 5))),
        "cut": good[: len(good) // 2],
        "checksum of IHDR": good[: header + 13] + bytes([good[header + 13] ^ 1]) + good[header + 14 :],
    }
    for what, data in refused.items():
        with pytest.raises(feedline.DataError):
            feedline.decode_image(data)
        with pytest.raises((OSError, SyntaxError, ValueError)):
            Image.open(io.BytesIO(data)).convert("RGB")
            pytest.fail(f"Pillow reads: {what}")
