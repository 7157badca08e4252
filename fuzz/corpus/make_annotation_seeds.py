#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of annotations_fuzz: a small dataset in each layout, with all kinds of values and damage."""

from __future__ import annotations

import json
import pathlib
import sys


def main() -> int:
    folder = pathlib.Path(__file__).parent / "annotations"
    folder.mkdir(exist_ok=True)
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 12, "height": 10} for i in (2, 1)]
    categories = [{"id": 90, "name": "b"}, {"id": 3, "name": "a"}]
    one = {"id": 5, "image_id": 1, "category_id": 3, "iscrowd": 0, "area": 4.5, "bbox": [1, 2, 3.5, 4]}
    polygon = {
        **one,
        "segmentation": [[1.5, 1.5, 8.2, 2.1, 5.7, 7.9], [2, 2, 4, 2, 4, 4]],
        "keypoints": [1, 2, 2, 0, 0, 0],
    }
    text = {**one, "iscrowd": 1, "segmentation": {"size": [10, 12], "counts": "f0191O2N1OO1NX1"}}
    runs = {**one, "segmentation": {"size": [10, 12], "counts": [5, 10, 105]}}
    wrong = {**one, "bbox": [1, 2], "segmentation": [[1, 2, 3]], "area": "x", "category_id": 4, "keypoints": [1]}
    caption = {"id": 1, "image_id": 2, "caption": 'a \u00e9 "b" \\ \n'}

    def coco(*annotations: dict[str, object], **more: object) -> str:
        return json.dumps({"images": images, "annotations": annotations, "categories": categories, **more})

    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3.5</xmax><ymax>4</ymax></bndbox>"
    seeds = {
        "polygons": "c" + coco(polygon, runs),
        "runs": "c" + coco(text, runs, info={"x": [True, None, -1e-3]}),
        "wrong": "c" + coco(wrong, {**one, "image_id": 9}),
        "captions": "c" + coco(caption),
        "cut": "c" + coco(polygon)[:-60],
        "voc": "v<?xml version='1.0'?><annotation><size><width>9</width></size><object><name>dog &amp;&#65;</name>"
        f"<pose>Left</pose><truncated>1</truncated><!-- c --><part><name>head</name></part>"
        f"{box}</object><x/></annotation>",
        "yaml": "ypath: ../x # c\ntrain: [a, 'b']\nval:\n- c\nnames:\n  0: a\n  1: \"b\"\ndownload: |\n  x: [\n",
        "flow": "ynames: {0: a,\n 1: b}\nkpt_shape: [17, 3]\nx: &a 1\n",
        "boxes": "l0 0.5 0.5 0.25 0.5\n2 .5 5e-1 1 1\n",
        "outlines": "l1 0.1 0.2 0.5 0.2 0.5 0.75\n",
        "points": "l0 .5 .5 .1 .1 .25 .5 2 0 0 0\n",
        "png": "i\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x09\0\0\0\x08",
        "jpeg": "i\xff\xd8\xff\xe0\x00\x04xx\xff\xc2\x00\x11\x08\x01\x02\x03\x04\x03\x01",
        "webp": "iRIFF....WEBPVP8X\x0a\0\0\0\0\0\0\0\x2b\x01\0\x63\0\0" + "\0" * 20,
    }
    for name, content in seeds.items():
        (folder / name).write_bytes(content.encode("latin-1" if content[0] == "i" else "utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
