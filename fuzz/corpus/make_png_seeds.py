#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of png_fuzz: small PNGs of every colour type, depth and filter, interlaced or not, and chunks."""

from __future__ import annotations

import pathlib
import sys
from dataclasses import replace

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "python"))

from made_png import DEPTHS, GREY, PALETTE, RGB, Kind, chunk, palette, png

NAMES = {0: "grey", 2: "rgb", 3: "palette", 4: "grey_alpha", 6: "rgba"}
EXIF = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"  # rotated by 90 degrees


def main() -> int:
    folder = pathlib.Path(__file__).parent / "png"
    folder.mkdir(exist_ok=True)
    kinds = {}
    for color, depths in DEPTHS.items():
        for depth in depths:
            kind = Kind(color, depth, 11, 7, level=9)
            if color == PALETTE:
                kind = replace(kind, chunks=[palette(1 << depth)])
            kinds[f"{NAMES[color]}_{depth}"] = kind
            kinds[f"{NAMES[color]}_{depth}_interlaced"] = replace(kind, interlaced=True)
    kinds["short_palette"] = Kind(PALETTE, 8, 9, 9, chunks=[palette(3), (b"tRNS", b"\0\x80")])
    kinds["many_idats"] = Kind(RGB, 8, 9, 9, idat=13)
    kinds["stored"] = Kind(GREY, 8, 20, 3, level=0)
    kinds["chunks"] = Kind(GREY, 8, 5, 5, chunks=[(b"gAMA", bytes(4)), (b"eXIf", EXIF), (b"tEXt", b"a\0b")])
    kinds["tall"] = Kind(GREY, 1, 1, 200, interlaced=True)
    seeds = {name: png(kind) for name, kind in kinds.items()}
    whole = seeds["rgb_8"]
    seeds["cut"] = whole[:-30]
    seeds["without_end"] = whole[:-12]
    seeds["text_after_data"] = whole[:-12] + chunk(b"tEXt", b"a\0b") + whole[-12:]
    for name, data in seeds.items():
        (folder / f"{name}.png").write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
