# SPDX-License-Identifier: Apache-2.0
"""Small sets of annotated photos: the same data as a COCO file, a Pascal VOC folder and a YOLO set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

NAMES = ("ant", "bee", "cow")
IDS = (7, 3, 90)  # of ant, bee and cow in the COCO file: bee is its first class, ant the second
WIDTH, HEIGHT = 64, 48

Object = tuple[str, tuple[int, int, int, int]]  # class; left, top, right, bottom


def photo(number: int) -> Image.Image:
    rng = np.random.default_rng(number)
    smooth = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(smooth).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)


def objects(number: int) -> list[Object]:
    """Returns 0 to 3 objects."""
    rng = np.random.default_rng(100 + number)
    made = []
    for _ in range(number % 4):
        left, top = int(rng.integers(0, WIDTH - 20)), int(rng.integers(0, HEIGHT - 20))
        right, bottom = left + int(rng.integers(4, 20)), top + int(rng.integers(4, 20))
        made.append((NAMES[int(rng.integers(0, 3))], (left, top, right, bottom)))
    return made


def polygon(box: tuple[int, int, int, int]) -> list[float]:
    """Returns a diamond inside the box."""
    left, top, right, bottom = box
    x, y = (left + right) / 2, (top + bottom) / 2
    return [x, top, right, y, x, bottom, left, y]


def coco_annotation(number: int, image: int, one: Object, **more: Any) -> dict[str, Any]:
    name, (left, top, right, bottom) = one
    return {
        "id": number,
        "image_id": image,
        "category_id": IDS[NAMES.index(name)],
        "iscrowd": 0,
        "area": (right - left) * (bottom - top) / 2,
        "bbox": [left, top, right - left, bottom - top],
        "segmentation": [polygon(one[1])],
        **more,
    }


def coco(root: Path, count: int = 12, **annotation: Any) -> Path:
    """Writes the JSON; the images are in a folder next to the JSON's folder, as with COCO."""
    folder = root / "train2017"
    folder.mkdir(parents=True)
    images, annotations = [], []
    for i in range(count):
        photo(i).save(folder / f"{i:012d}.jpg", quality=90)
        images.append({"id": 1000 + i, "file_name": f"{i:012d}.jpg", "width": WIDTH, "height": HEIGHT, "license": 1})
        for one in objects(i):
            annotations.append(coco_annotation(len(annotations), 1000 + i, one, **annotation))
    categories = [{"id": number, "name": name, "supercategory": "x"} for number, name in zip(IDS, NAMES, strict=True)]
    path = root / "annotations" / "instances_train2017.json"
    path.parent.mkdir()
    path.write_text(
        json.dumps(
            {"info": {"year": 2017}, "images": images[::-1], "annotations": annotations[::-1], "categories": categories}
        )
    )
    return path


def change(path: Path, **lists: list[Any]) -> Path:
    """Replaces lists of a COCO file, or extends them: `add_annotations` extends `annotations`."""
    whole = json.loads(path.read_text())
    for name, rows in lists.items():
        whole[name.removeprefix("add_")] = (whole[name.removeprefix("add_")] if name.startswith("add_") else []) + rows
    path.write_text(json.dumps(whole))
    return path


def voc_xml(all_objects: list[Object]) -> str:
    rows = "".join(
        f"<object><name>{name}</name><pose>Left</pose><truncated>{i % 2}</truncated><difficult>{i // 2}</difficult>"
        f"<bndbox><xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>\n"
        for i, (name, (left, top, right, bottom)) in enumerate(all_objects)
    )
    return f"<annotation>\n<size><width>{WIDTH}</width><height>{HEIGHT}</height></size>\n{rows}</annotation>\n"


def voc(root: Path, count: int = 12) -> Path:
    """With lists train (all but the last three) and val, and masks for images with even numbers."""
    folders = ("JPEGImages", "Annotations", "ImageSets/Main", "ImageSets/Segmentation", "SegmentationClass")
    for folder in (*folders, "SegmentationObject"):
        (root / folder).mkdir(parents=True)
    keys = [f"2008_{i:06d}" for i in range(count)]
    for i, key in enumerate(keys):
        photo(i).save(root / "JPEGImages" / f"{key}.jpg", quality=90)
        (root / "Annotations" / f"{key}.xml").write_text(voc_xml(objects(i)))
        if i % 2 == 0:
            for kind, values in (("Class", (1, 3)), ("Object", (1, 2))):
                labels = np.zeros((HEIGHT, WIDTH), np.uint8)
                for value, (_, (left, top, right, bottom)) in zip(values, objects(i), strict=False):
                    labels[top:bottom, left:right] = value
                image = Image.fromarray(labels, "P")
                image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0])
                image.save(root / f"Segmentation{kind}" / f"{key}.png")
    for name, some in (("train", keys[:-3]), ("val", keys[-3:])):
        (root / "ImageSets" / "Main" / f"{name}.txt").write_text("".join(f"{key}\n" for key in some))
        (root / "ImageSets" / "Segmentation" / f"{name}.txt").write_text("".join(f"{key}\n" for key in some[::2]))
        for one in NAMES:
            (root / "ImageSets" / "Main" / f"{one}_{name}.txt").write_text("".join(f"{key}  1\n" for key in some))
    return root


def yolo(root: Path, count: int = 12, masks: bool = False) -> Path:
    """The YAML file; images without objects have no label file."""
    for folder in ("images/train", "labels/train"):
        (root / folder).mkdir(parents=True)
    for i in range(count):
        photo(i).save(root / "images/train" / f"{i:06d}.jpg", quality=90)
        rows = []
        for name, (left, top, right, bottom) in objects(i):
            if masks:
                points = polygon((left, top, right, bottom))
                shares = [value / (HEIGHT if k % 2 else WIDTH) for k, value in enumerate(points)]
            else:
                shares = [(left + right) / 2 / WIDTH, (top + bottom) / 2 / HEIGHT]
                shares += [(right - left) / WIDTH, (bottom - top) / HEIGHT]
            rows.append(" ".join(map(str, [NAMES.index(name), *shares])))
        if rows:
            (root / "labels/train" / f"{i:06d}.txt").write_text("\n".join(rows) + "\n")
    path = root / "data.yaml"
    path.write_text("path: .  # here\ntrain: images/train\nval: images/train\nnames:\n  0: ant\n  1: bee\n  2: cow\n")
    return path
