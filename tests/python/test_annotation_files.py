# SPDX-License-Identifier: Apache-2.0
"""Files of annotation tools: YAML, image lists and image formats of YOLO sets, unknown values in COCO."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline

Image = pytest.importorskip("PIL.Image")

LINE, BOX = "1 0.5 0.5 0.25 0.5\n", [[15.0, 7.5, 25.0, 22.5]]


def write_photo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)).save(path)


def write_yolo(root: Path, yaml: str, photo: str = "a.png") -> str:
    write_photo(root / "images" / photo)
    (root / "labels").mkdir(exist_ok=True)
    (root / "labels" / "a.txt").write_text(LINE)
    (root / "data.yaml").write_text(f"path: {root}\n{yaml}", encoding="utf-8")
    return str(root / "data.yaml")


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        ("names: [cat, 'jack-o''-lantern']", ["cat", "jack-o'-lantern"]),
        ('names: [cat, "19\\" rack"]', ["cat", '19" rack']),
        ('names: ["caf\\xE9", "\\u732B"]', ["café", "猫"]),
        ("names: ['cat [1]', \"{dog}\"]", ["cat [1]", "{dog}"]),
        ("names: &n [a, b]\nother: *n", ["a", "b"]),
        ("names:\n  0: 'yes'\n  1: '010'", ["yes", "010"]),
        ("names: [a, b]\nkpt_names:\n  0:\n    - nose", ["a", "b"]),
        ("download: |\n  import os\n  x: [1\nnames: [a, b]", ["a", "b"]),
        ("augment:\n  - flip: 0.5\n    scale: 1\nnames: [a, b]", ["a", "b"]),
    ],
)
def test_names_are_those_of_yaml(tmp_path: Path, names: str, classes: list[str]) -> None:
    assert feedline.open(write_yolo(tmp_path, f"train: images\n{names}\n")).classes == classes


@pytest.mark.parametrize("yaml", ["names: [a", "names: *nothing", "train: images\ntrain: images", "- a"])
def test_wrong_yaml_names_file_and_line(tmp_path: Path, yaml: str) -> None:
    source = write_yolo(tmp_path, "")
    Path(source).write_text(yaml)
    with pytest.raises(feedline.DataError, match=r"in line [0-9]") as caught:
        feedline.open(source)
    assert caught.value.shard == source


@pytest.mark.parametrize("ending", ["bmp", "tif", "ppm", "gif", "avif", "jp2", "webp", "jpg"])
def test_every_kind_of_image(tmp_path: Path, ending: str) -> None:
    try:
        source = write_yolo(tmp_path, "train: images\nnames: [cat, dog]\n", f"a.{ending}")
    except (KeyError, OSError, ValueError):
        pytest.skip(f"Pillow does not write .{ending} here")
    assert feedline.open(source)[0].boxes.tolist() == BOX


def test_an_image_without_a_size_is_named(tmp_path: Path) -> None:
    source = write_yolo(tmp_path, "train: images\nnames: [cat, dog]\n", "a.bmp")
    (tmp_path / "images" / "a.bmp").write_bytes(b"BM" + bytes(9))
    with pytest.raises(feedline.DataError, match="size of the image") as caught:
        feedline.open(source)[0]
    assert caught.value.key == "a.bmp"


@pytest.mark.parametrize(
    ("path", "list_path", "lines"),
    [
        ("ROOT", "train.txt", "./images/a.png\n"),
        ("ROOT", "train.txt", "\ufeff./images/a.png\r\n"),
        ("ROOT", "train.txt", "images/a.png\n"),
        ("coco", "train.txt", "./images/a.png\n"),
        ("coco", "train.txt", "images/a.png\n"),
        ("ROOT", "lists/train.txt", "./../images/a.png\n"),
        ("ROOT", "lists/train.txt", "images/a.png\n"),
        ("ROOT", "lists/train.txt", "ROOT/images/a.png\n"),
    ],
)
def test_lists_of_images(tmp_path: Path, path: str, list_path: str, lines: str) -> None:
    source = write_yolo(tmp_path, "")
    root = str(tmp_path)
    (tmp_path / list_path).parent.mkdir(exist_ok=True)
    (tmp_path / list_path).write_text(lines.replace("ROOT", root), encoding="utf-8")
    Path(source).write_text(f"path: {path.replace('ROOT', root)}\ntrain: {list_path}\nnames: [cat, dog]\n")
    assert [sample.boxes.tolist() for sample in feedline.open(source)] == [BOX]


@pytest.mark.parametrize(
    ("image", "annotation"),
    [
        ({"width": -1, "height": -1}, {}),
        ({"width": 0, "height": 0}, {}),
        ({"width": None, "height": None}, {}),
        ({"width": 1e300}, {}),
        ({}, {"iscrowd": None}),
        ({}, {"area": None}),
    ],
)
def test_coco_values_that_are_not_known(tmp_path: Path, image: dict[str, Any], annotation: dict[str, Any]) -> None:
    write_photo(tmp_path / "a.png")
    whole = {
        "images": [{"id": 1, "file_name": "a.png", "width": 40, "height": 30} | image],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [5, 6, 10, 11]} | annotation],
        "categories": [{"id": 1, "name": "x"}],
    }
    (tmp_path / "coco.json").write_text(json.dumps(whole))
    dataset = feedline.open(str(tmp_path / "coco.json"), fields=("image", "boxes", "iscrowd"))
    assert dataset[0].boxes.tolist() == [[5, 6, 15, 17]] and dataset[0].iscrowd.tolist() == [0]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    "other",
    [np.zeros(3), np.array(0.1), np.array({"author": "x"}, object), np.array(["cat", "dog"]), np.zeros(2, "c16")],
)
def test_npz_members_that_are_not_named(tmp_path: Path, save: Any, other: Any) -> None:
    path = str(tmp_path / "a.npz")
    save(path, x=np.arange(5), other=other, z=np.arange(10.0).reshape(5, 2))
    dataset = feedline.open(path, fields=("x", "also=z"))
    assert [int(sample.x) for sample in dataset] == list(range(5))
    assert dataset[4].also.tolist() == [8.0, 9.0]
    with pytest.raises(feedline.ConfigError, match=r"no array 'w'; the file has x, other, z"):
        feedline.open(path, fields=("x", "w"))
