# SPDX-License-Identifier: Apache-2.0
"""Polygons cover the same pixels as in pycocotools' annToMask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import feedline

Original = Callable[..., Any]


def test_outlines_cover_the_pixels_that_pycocotools_gives(original: Original, tmp_path: Path) -> None:
    written = original("pycocotools", "write_coco.py", tmp_path)
    assert written["masks"] >= 20_000
    with np.load(tmp_path / "masks.npz") as wanted:
        dataset = feedline.open(tmp_path / "x.json", fields=("image_id", "masks"))
        assert len(dataset) == len(wanted.files)
        for i in range(len(dataset)):
            one = dataset[i]
            packed = np.packbits(one.masks)
            if not np.array_equal(packed, wanted[str(int(one.image_id))]):
                bits = np.unpackbits(wanted[str(int(one.image_id))])[: one.masks.size].reshape(one.masks.shape)
                differ = [k for k in range(len(bits)) if not np.array_equal(bits[k], one.masks[k])]
                raise AssertionError(f"image {int(one.image_id)}: the masks {differ} differ")
