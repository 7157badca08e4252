#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_coco.py FILE [IMAGES] [ANNOTATIONS]: a COCO file of the size of instances_train2017.json, without its images.

118,287 images and 860,001 annotations by default, with polygons of 3 to 50 points and two decimals, as those of COCO.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path


def main(path: Path, images: int = 118_287, annotations: int = 860_001) -> None:
    rng = random.Random(1)
    with path.open("w") as out:
        out.write('{"info": {"year": 2017}, "licenses": [], "images": [')
        for i in range(images):
            row = {
                "license": 3,
                "file_name": f"{i:012d}.jpg",
                "coco_url": f"http://images.cocodataset.org/train2017/{i:012d}.jpg",
            }
            row |= {"height": 480, "width": 640, "date_captured": "2013-11-14 11:18:45", "id": i * 5}
            out.write(("" if i == 0 else ", ") + json.dumps(row))
        out.write('], "annotations": [')
        for i in range(annotations):
            x, y, w, h = rng.uniform(0, 500), rng.uniform(0, 400), rng.uniform(5, 140), rng.uniform(5, 80)
            points = [round(rng.random() * (w, h)[k % 2] + (x, y)[k % 2], 2) for k in range(2 * rng.randint(3, 50))]
            row = {
                "segmentation": [points],
                "area": round(w * h / 2, 4),
                "iscrowd": 0,
                "image_id": rng.randrange(images) * 5,
            }
            row |= {"bbox": [round(v, 2) for v in (x, y, w, h)], "category_id": 1 + i % 80, "id": i}
            out.write(("" if i == 0 else ", ") + json.dumps(row))
        categories = [{"supercategory": "x", "id": i, "name": f"class {i}"} for i in range(1, 81)]
        out.write(f'], "categories": {json.dumps(categories)}}}')


main(Path(sys.argv[1]), *map(int, sys.argv[2:4]))
