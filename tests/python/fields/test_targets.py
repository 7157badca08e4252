# SPDX-License-Identifier: Apache-2.0
"""Boxes and keypoints follow the image: their numbers equal those of torchvision v2 for the values that Feedline has
drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torchvision", reason="torchvision, whose rules these are, is not installed")

from made_targets import FLOATS, FORMATS, INTEGERS, Original, assert_equal, make_targets

import feedline

COUNT = 2000
Chain = list[tuple[str, dict[str, Any]]]
CHAINS: dict[str, Chain] = {
    "flips": [("random_horizontal_flip", {}), ("random_vertical_flip", {})],
    "short side": [("resize", {"size": 37})],
    "sides": [("resize", {"size": (31, 53)})],
    "short side up to": [("resize", {"size": 37, "max_size": 40})],
    "center crop": [("center_crop", {"size": 41})],
    "random crop": [("random_crop", {"size": 17})],
    "padded crop": [("random_crop", {"size": 50, "padding": (3, 1, 4, 2), "pad_if_needed": True})],
    "resized crop": [("random_resized_crop", {"size": 32})],
    "pad": [("pad", {"padding": (1, 2, 3, 4)})],
    "zoom out": [("random_zoom_out", {})],
    "iou crop": [("random_iou_crop", {})],
    "sanitize": [("sanitize_bounding_boxes", {"min_size": 2.5, "min_area": 30.0})],
    "rotation": [("random_rotation", {"degrees": 30})],
    "growing rotation": [("random_rotation", {"degrees": 200, "expand": True})],
    "affine": [
        ("random_affine", {"degrees": 20, "translate": (0.1, 0.2), "scale": (0.7, 1.4), "shear": (-9, 12, -5, 5)})
    ],
    "perspective": [("random_perspective", {"p": 0.8})],
    "jittered scale": [("scale_jitter", {"target_size": (40, 50)})],
    "one short side": [("random_short_side", {"min_size": [20, 30, 44], "max_size": 60})],
    "detection": [
        ("random_zoom_out", {"p": 0.3}),
        ("random_iou_crop", {}),
        ("random_horizontal_flip", {}),
        ("resize", {"size": 64, "max_size": 90}),
        ("sanitize_bounding_boxes", {}),
    ],
    "everything": [
        ("random_vertical_flip", {}),
        ("random_crop", {"size": 60, "pad_if_needed": True}),
        ("random_horizontal_flip", {}),
        ("random_resized_crop", {"size": 45}),
        ("pad", {"padding": (0, 5, 7, 0)}),
        ("center_crop", {"size": 40}),
        ("random_iou_crop", {}),
        ("sanitize_bounding_boxes", {}),
    ],
}


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_targets(tmp_path_factory.mktemp("targets") / "x.tar", COUNT)


def with_chain(dataset: feedline.Dataset, chain: Chain) -> feedline.Dataset:
    for name, arguments in chain:
        dataset = getattr(dataset, name)(**arguments)
    return dataset.collate("list", fields=("png", "mask.png", "labels.npy"))


def opened(tar: Path, fields: tuple[str, ...], format: str = "XYXY", mode: str | None = "soft") -> feedline.Dataset:
    return feedline.open(tar, fields=fields).boxes(fields[2].partition(":")[0], format, mode, unsound="keep")


@pytest.mark.parametrize("fields", [FLOATS, INTEGERS], ids=["float32", "int64"])
@pytest.mark.parametrize("name", CHAINS)
def test_every_number_is_torchvisions(tar: Path, name: str, fields: tuple[str, ...]) -> None:
    for start, format in enumerate(FORMATS):  # a third of the samples for each
        dataset = with_chain(opened(tar, fields, format), CHAINS[name])
        for number in range(start, COUNT, 3):
            original = Original(number, fields, format)
            original.replay(CHAINS[name], dataset.draw(number))
            _, mask, boxes, points, labels = dataset.sample(number)
            what = f"sample {number}, {format}"
            divides = name == "perspective"
            assert_equal(boxes, original.boxes, what, divides)
            assert_equal(points, original.points, what, divides)
            assert_equal(labels, original.labels, what)
            if original.mask is not None:
                assert_equal(mask, original.mask, what)
