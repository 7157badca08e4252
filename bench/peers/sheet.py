# SPDX-License-Identifier: Apache-2.0
"""Draws a contact sheet of delivered images: a row for each array that `compare.py --sheets FOLDER` saved.

usage: sheet.py FOLDER OUT.png. For visual inspection: crops, colours and normalisation should look the same in all
rows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw
from work import MEAN, SIZE, STD

_SHOWN, _SIDE, _TEXT = 8, 112, 14


def pixels(batch: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns uint8 in NHWC, without normalisation."""
    images = batch.transpose(0, 2, 3, 1)
    if images.dtype == np.uint8:
        return images
    shown = 255 * (images * np.array(STD) + np.array(MEAN))
    return np.clip(np.rint(shown), 0, 255).astype(np.uint8)


def main() -> int:
    batches = {path.stem: np.load(path) for path in sorted(Path(sys.argv[1]).glob("*.npy"))}
    batches = {name: batch for name, batch in batches.items() if batch.ndim == 4 and batch.shape[2:] == (SIZE, SIZE)}
    sheet = Image.new("RGB", (_SHOWN * _SIDE, len(batches) * (_SIDE + _TEXT)), "white")
    for row, (name, batch) in enumerate(batches.items()):
        top = row * (_SIDE + _TEXT)
        ImageDraw.Draw(sheet).text((2, top), name, fill="black")
        for column, image in enumerate(pixels(batch[:_SHOWN])):
            sheet.paste(Image.fromarray(image).resize((_SIDE, _SIDE)), (column * _SIDE, top + _TEXT))
    sheet.save(sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
