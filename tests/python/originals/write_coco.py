# SPDX-License-Identifier: Apache-2.0
"""write_coco.py FOLDER: writes a COCO file with polygons and runs of every kind, and the masks that pycocotools draws
from it.

Writes FOLDER/x.json and FOLDER/masks.npz: the masks of each image, by its id, in bits. Prints how many there are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pycocotools import mask as masks
from pycocotools.coco import COCO

IMAGES, PER_IMAGE = 400, 52
MOST_NOISE = 10_000  # pixels of a noise mask, which has many runs
SIZES = [(480, 640), (17, 33), (1, 1), (240, 7), (5, 500), (333, 500)]  # height, width


def polygon(rng: np.random.Generator, height: int, width: int) -> list[float]:
    """Returns 3 to 30 points: anywhere near the image, on pixels, on their borders, far outside, or repeated."""
    kind = rng.integers(0, 6)
    count = int(rng.integers(3, 30))
    points = rng.uniform(-0.2, 1.2, (count, 2)) * [width, height]
    if kind == 1:
        points = np.round(points)
    elif kind == 2:
        points = np.round(points * 2) / 2
    elif kind == 3:
        points = np.round(points, 2)
    elif kind == 4:
        points = np.repeat(points, 2, axis=0)
    elif kind == 5:
        points = points * 4 - [width, height]
    return [float(value) for value in points.reshape(-1)]


def segmentation(rng: np.random.Generator, height: int, width: int) -> Any:
    kind = rng.integers(0, 10)
    if kind < 8 or height * width > MOST_NOISE:
        return [polygon(rng, height, width) for _ in range(1 + kind // 4 * int(rng.integers(0, 4)))]
    filled = np.asfortranarray((rng.random((height, width)) < rng.random()).astype(np.uint8))
    runs = masks.encode(filled)
    if kind == 8:
        return {"size": runs["size"], "counts": runs["counts"].decode()}
    flat = filled.reshape(-1, order="F")
    ends = np.flatnonzero(np.diff(flat)) + 1
    counts = np.diff(np.concatenate([[0], ends, [flat.size]])).tolist()
    return {"size": [height, width], "counts": ([0, *counts] if flat[0] else counts)}


def main(folder: Path) -> None:
    rng = np.random.default_rng(7)
    images, annotations = [], []
    for i in range(IMAGES):
        height, width = SIZES[i % len(SIZES)] if i < 300 else (int(rng.integers(1, 200)), int(rng.integers(1, 200)))
        images.append({"id": i, "file_name": f"{i}.jpg", "height": height, "width": width})
        for _ in range(PER_IMAGE):
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": i,
                    "category_id": 1,
                    "iscrowd": 0,
                    "area": 1.0,
                    "bbox": [0, 0, 1, 1],
                    "segmentation": segmentation(rng, height, width),
                }
            )
    path = folder / "x.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "a"}]}))
    coco = COCO(str(path))
    packed = {
        str(i): np.packbits(np.stack([coco.annToMask(one) for one in coco.loadAnns(coco.getAnnIds(i))]))
        for i in range(IMAGES)
    }
    np.savez_compressed(folder / "masks.npz", **packed)
    print()
    print(json.dumps({"masks": len(annotations)}))


main(Path(sys.argv[1]))
