#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of tiff_fuzz: small TIFFs of every compression, predictor and layout."""

from __future__ import annotations

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "python"))

import numpy as np
from made_tiff import COMPRESSIONS, DEFLATE, LZW, NONE, Layout, tiff


def main() -> int:
    folder = pathlib.Path(__file__).parent / "tiff"
    folder.mkdir(exist_ok=True)
    pixels = (np.arange(9 * 13 * 3).reshape(9, 13, 3) * 997 % 5000).astype(np.uint16)
    grey = pixels[..., 0]
    seeds = {f"compression_{number}": tiff(grey, Layout(number, rows=4)) for number in COMPRESSIONS}
    seeds["tiles"] = tiff(pixels, Layout(LZW, 2, tile=(4, 8)))
    seeds["planes"] = tiff(pixels, Layout(NONE, planar=True, rows=5, big_endian=True))
    seeds["floats"] = tiff(grey.astype(np.float32) / 3, Layout(DEFLATE, 3, big_tiff=True))
    seeds["halves"] = tiff(grey.astype(np.float16), Layout(NONE))
    seeds["bytes"] = tiff((grey // 20).astype(np.uint8), Layout(LZW, 2, rows=9))
    seeds["pages"] = tiff([grey, pixels[:3]], Layout(NONE, big_endian=True))
    seeds["cut"] = seeds["tiles"][:-40]
    for name, data in seeds.items():
        (folder / f"{name}.tif").write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
