# SPDX-License-Identifier: Apache-2.0
"""Sources whose images have masks, boxes and keypoints: COCO, VOC and YOLO datasets, and a tar of such members.

Sample i has 1 + i % 3 boxes of class i. The first covers the whole image, the others its upper left quarter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import made_data
import numpy as np
from fields.made_fields import npy, palette_png
from PIL import Image

import feedline

WIDTH, HEIGHT = 40, 32
OVERLAP = 255  # of COCO's mask
NAMES = {  # fields by their part in the checks
    "boxes": ("boxes",),
    "labels": ("labels", "keypoints", "points", "masks"),
    "masks": ("mask", "masks"),
}


def boxes_of(index: int) -> np.ndarray:
    """Left, top, right, bottom."""
    quarter = (0, 0, WIDTH // 2, HEIGHT // 2)
    return np.array([(0, 0, WIDTH, HEIGHT)] + [quarter] * (index % 3), np.float32)


def make(root: Path, rows: int, step: int) -> None:
    for writer, name in ((_coco, "coco"), (_voc, "voc"), (_yolo, "yolo")):
        (root / name).mkdir()
        writer(root / name, rows, step)
    members = []
    for i in range(rows):
        boxes = boxes_of(i)
        parts = {
            "cls": b"%d" % i,
            "image": made_data.encoded(_pixels(i, step), "PNG"),
            "mask": palette_png(np.full((HEIGHT, WIDTH), i + 1)),
            "boxes": npy(boxes),
            "points": npy(boxes.reshape(-1, 2, 2)),
            "labels": npy(np.full(len(boxes), i)),
        }
        members += [(f"{i:03d}.{name}", data) for name, data in parts.items()]
    made_data.write_tar(root / "annotated.tar", members)


def _pixels(index: int, step: int) -> np.ndarray:
    return np.full((HEIGHT, WIDTH, 3), step * index, np.uint8)


def _corners(box: np.ndarray) -> list[float]:
    left, top, right, bottom = map(float, box)
    return [left, top, right, top, right, bottom, left, bottom]


def _coco(root: Path, rows: int, step: int) -> None:
    (root / "val").mkdir()
    annotations: list[dict[str, Any]] = []
    for i in range(rows):
        Image.fromarray(_pixels(i, step)).save(root / "val" / f"{i:03d}.png")
        for box in boxes_of(i):
            left, top, right, bottom = map(float, box)
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": i,
                    "category_id": i + 1,
                    "iscrowd": 0,
                    "area": (right - left) * (bottom - top),
                    "bbox": [left, top, right - left, bottom - top],
                    "segmentation": [_corners(box)],
                    "keypoints": [left, top, 2, right, bottom, 1],
                }
            )
    points = {"keypoints": ["first", "last"]}
    whole = {
        "images": [{"id": i, "file_name": f"{i:03d}.png", "width": WIDTH, "height": HEIGHT} for i in range(rows)],
        "annotations": annotations,
        "categories": [{"id": i + 1, "name": f"class {i}", **points} for i in range(rows)],
    }
    (root / "instances_val.json").write_text(json.dumps(whole))


def _voc(root: Path, rows: int, step: int) -> None:
    for folder in ("JPEGImages", "Annotations", "ImageSets/Main", "ImageSets/Segmentation", "SegmentationClass"):
        (root / folder).mkdir(parents=True)
    for i in range(rows):
        (root / "JPEGImages" / f"{i:03d}.jpg").write_bytes(made_data.encoded(_pixels(i, step), "JPEG"))
        objects = "".join(
            f"<object><name>c{i:02d}</name><bndbox><xmin>{box[0]}</xmin><ymin>{box[1]}</ymin>"
            f"<xmax>{box[2]}</xmax><ymax>{box[3]}</ymax></bndbox></object>"
            for box in boxes_of(i)
        )
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height></size>"
        (root / "Annotations" / f"{i:03d}.xml").write_text(f"<annotation>{size}{objects}</annotation>")
        mask = palette_png(np.full((HEIGHT, WIDTH), i + 1))
        (root / "SegmentationClass" / f"{i:03d}.png").write_bytes(mask)
    for kind in ("Main", "Segmentation"):
        (root / "ImageSets" / kind / "train.txt").write_text("".join(f"{i:03d}\n" for i in range(rows)))


def _yolo(root: Path, rows: int, step: int) -> None:
    for folder in ("images/train", "labels/train"):
        (root / folder).mkdir(parents=True)
    for i in range(rows):
        Image.fromarray(_pixels(i, step)).save(root / "images/train" / f"{i:03d}.bmp")
        corners = [np.reshape(_corners(box), (-1, 2)) / (WIDTH, HEIGHT) for box in boxes_of(i)]
        lines = [" ".join(map(str, (i, *points.ravel()))) for points in corners]
        (root / "labels/train" / f"{i:03d}.txt").write_text("\n".join(lines) + "\n")
    names = "".join(f"  {i}: class {i}\n" for i in range(rows))
    (root / "data.yaml").write_text(f"path: .\ntrain: images/train\nval: images/train\nnames:\n{names}")


OPENERS = {
    "coco": lambda root: feedline.open(
        root / "coco" / "instances_val.json", fields=("image", "boxes", "labels", "keypoints", "masks", "image_id")
    ),
    "coco with one mask": lambda root: feedline.open(
        root / "coco" / "instances_val.json", fields=("image", "boxes", "labels", "mask", "image_id")
    ),
    "voc": lambda root: feedline.open(root / "voc", fields=("image", "boxes", "labels", "mask")),
    "yolo": lambda root: feedline.open(root / "yolo" / "data.yaml", fields=("image", "boxes", "labels", "masks")),
    "annotated tar": lambda root: feedline.open(
        root / "annotated.tar",
        fields=("image:image", "mask:mask", "boxes:boxes", "points:keypoints", "labels:array", "cls"),
    ).collate("list", fields="labels"),
}


def fault(sample: dict[str, np.ndarray], index: int, same_colour: bool) -> str:
    """What is wrong with the annotations of a sample (height last but one of its channels-first image), or ""."""
    height, width = sample["image"].shape[-2:]
    counts = {name: len(sample[name]) for part in ("boxes", "labels") for name in NAMES[part] if name in sample}
    if len(set(counts.values())) > 1:
        return f"rows of one sample: {counts}"
    for name in (name for name in NAMES["labels"][:1] if name in sample):
        if (sample[name] != index).any():
            return f"{name} {sample[name]} and not {index}"
    for name in (name for name in NAMES["masks"] if name in sample):
        if len(sample[name]) and sample[name].shape[-2:] != (height, width):
            return f"{name} of {sample[name].shape} for an image of {height} x {width}"
        valid = {0, 1} if name == "masks" else {0, index + 1, OVERLAP}
        if not set(np.unique(sample[name]).tolist()) <= valid:
            return f"{name} has {np.unique(sample[name])} and not {valid}"
        if same_colour and name != "masks" and 0 in sample[name]:
            return f"{name} has background, but its object covers the image"
    for name in (name for name in NAMES["boxes"] if name in sample):
        boxes = sample[name]
        if same_colour and len(boxes) and not np.allclose(boxes[0], (0, 0, width, height), atol=1e-3):
            return f"{name} {boxes[0]} does not cover an image of {height} x {width}"
    return ""
