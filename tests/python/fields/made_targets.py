# SPDX-License-Identifier: Apache-2.0
"""Samples with an image, a mask, boxes, keypoints and labels, and the results of torchvision v2 for them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from made_data import write_tar
from made_fields import key, npy
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F

import feedline

FLOATS = ("png", "mask.png", "floats.npy:boxes", "points.npy:keypoints", "labels.npy")
INTEGERS = ("png", "mask.png", "integers.npy:boxes", "pixels.npy:keypoints", "labels.npy")
FORMATS = ("XYXY", "XYWH", "CXCYWH")


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def boxes(rng: np.random.Generator, width: int, height: int, count: int) -> np.ndarray:
    """Mostly valid ones in one of the formats, and some that are empty, inverted, outside, far away or not finite."""
    corners = rng.uniform(-0.2, 1.2, (count, 4)) * [width, height, width, height]
    corners[::2] = np.concatenate(
        [
            np.minimum(corners[::2, :2], corners[::2, 2:]),
            corners[::2].max(axis=1)[:, None],
            corners[::2].max(axis=1)[:, None],
        ],
        axis=1,
    )
    kinds = rng.integers(0, 12, count)
    corners[kinds == 0] = 0
    corners[kinds == 1, 2:] = corners[kinds == 1, :2]
    corners[kinds == 2] *= 1000
    corners[kinds == 3] = np.round(corners[kinds == 3])
    corners[kinds == 4] = np.abs(corners[kinds == 4])
    return corners


def files_of(number: int) -> dict[str, bytes]:
    rng = np.random.default_rng(number)
    height, width = (int(side) for side in rng.integers(18, 90, 2))
    count = int(rng.integers(0, 61)) if number % 5 else number // 5 % 3
    floats = boxes(rng, width, height, count).astype(np.float32)
    integers = floats.astype(np.int64)
    if count > 3 and number % 7 == 0:
        floats[1, 2] = np.nan
    points = rng.uniform(-0.1, 1.1, (count, 3, 2)) * [width, height]
    return {
        "png": png(rng.integers(0, 255, (height, width, 3), dtype=np.uint8)),
        "mask.png": png(rng.integers(0, 21, (height, width), dtype=np.uint8)),
        "floats.npy": npy(floats),
        "integers.npy": npy(integers),
        "points.npy": npy(points.astype(np.float32)),
        "pixels.npy": npy(points.astype(np.int64)),
        "labels.npy": npy(np.arange(count, dtype=np.int64) + 1000 * number),
    }


def make_targets(path: Path, count: int) -> Path:
    write_tar(path, [(f"{key(i)}.{name}", data) for i in range(count) for name, data in files_of(i).items()])
    return path


def stored(number: int, names: Sequence[str]) -> list[np.ndarray]:
    files = files_of(number)
    return [np.load(io.BytesIO(files[name.partition(":")[0]])) for name in names]


class Original:
    """Returns a sample of the tar in torchvision's types, with the operations that Feedline has drawn for it."""

    def __init__(self, number: int, fields: Sequence[str], format: str, clamping_mode: str | None = "soft") -> None:
        files = files_of(number)
        image = Image.open(io.BytesIO(files["png"]))
        canvas = (image.height, image.width)
        floats, points, labels = stored(number, fields[2:])
        self.mask: Any = tv_tensors.Mask(np.asarray(Image.open(io.BytesIO(files["mask.png"]))))
        self.boxes = tv_tensors.BoundingBoxes(floats, format=format, canvas_size=canvas, clamping_mode=clamping_mode)
        self.points = tv_tensors.KeyPoints(points, canvas_size=canvas)
        self.labels = torch.from_numpy(labels)

    def each(self, change: Any, **arguments: Any) -> None:
        for name in ("mask", "boxes", "points"):
            setattr(self, name, change(getattr(self, name), **arguments))

    def warp(self, change: Any, **arguments: Any) -> None:
        """Only for boxes and points; other tests compare masks with the original."""
        self.mask = None
        self.boxes, self.points = change(self.boxes, **arguments), change(self.points, **arguments)

    def random_rotation(self, arguments: Any, drawn: Any) -> None:
        self.warp(F.rotate, angle=drawn["random_rotation", "angle"][0], expand=arguments.get("expand", False))

    def random_affine(self, _: Any, drawn: Any) -> None:
        names = ("angle", "translate", "scale", "shear")
        angle, translate, scale, shear = (list(drawn["random_affine", name]) for name in names)
        self.warp(F.affine, angle=angle[0], translate=translate, scale=scale[0], shear=shear)

    def random_perspective(self, _: Any, drawn: Any) -> None:
        if ("random_perspective", "startpoints") not in drawn:
            return
        corners = [np.reshape(drawn["random_perspective", name], (4, 2)) for name in ("startpoints", "endpoints")]
        start, end = (points.astype(int).tolist() for points in corners)
        self.warp(F.perspective, startpoints=start, endpoints=end)

    def scale_jitter(self, _: Any, drawn: Any) -> None:
        self.each(F.resize, size=[int(side) for side in drawn["scale_jitter", "size"]])

    def random_short_side(self, _: Any, drawn: Any) -> None:
        self.each(F.resize, size=[int(side) for side in drawn["random_short_side", "size"]])

    def replay(self, operations: Sequence[tuple[str, dict[str, Any]]], drawn: Sequence[feedline.Drawn]) -> None:
        values = {(entry.operation, entry.name): entry.values for entry in drawn}
        for name, arguments in operations:
            getattr(self, name)(arguments, values)

    def random_horizontal_flip(self, _: Any, drawn: Any) -> None:
        if drawn["random_horizontal_flip", "flip"] == (1,):
            self.each(F.horizontal_flip)

    def random_vertical_flip(self, _: Any, drawn: Any) -> None:
        if drawn["random_vertical_flip", "flip"] == (1,):
            self.each(F.vertical_flip)

    def resize(self, arguments: Any, _: Any) -> None:
        size = arguments["size"]
        self.each(F.resize, size=[size] if isinstance(size, int) else list(size), max_size=arguments.get("max_size"))

    def center_crop(self, arguments: Any, _: Any) -> None:
        size = arguments["size"]
        self.each(F.center_crop, output_size=[size, size] if isinstance(size, int) else list(size))

    def random_crop(self, arguments: Any, drawn: Any) -> None:
        size = arguments["size"]
        left, top, right, bottom = arguments.get("padding", (0, 0, 0, 0))
        height, width = self.boxes.canvas_size
        more_width = max(0, size - width - left - right) if arguments.get("pad_if_needed") else 0
        more_height = max(0, size - height - top - bottom) if arguments.get("pad_if_needed") else 0
        padding = [left + more_width, top + more_height, right + more_width, bottom + more_height]
        if any(padding):
            self.each(F.pad, padding=padding)
        if tuple(self.boxes.canvas_size) != (size, size):
            self.crop(drawn["random_crop", "crop"])

    def crop(self, box: Sequence[float]) -> None:
        left, top, width, height = map(int, box)
        self.each(F.crop, top=top, left=left, height=height, width=width)

    def random_resized_crop(self, arguments: Any, drawn: Any) -> None:
        left, top, width, height = map(int, drawn["random_resized_crop", "crop"])
        size = [arguments["size"]] * 2
        self.each(F.resized_crop, top=top, left=left, height=height, width=width, size=size)

    def pad(self, arguments: Any, _: Any) -> None:
        left, top, right, bottom = arguments["padding"]
        self.each(F.pad, padding=[left, top, right, bottom])

    def random_zoom_out(self, _: Any, drawn: Any) -> None:
        if ("random_zoom_out", "padding") in drawn:
            self.each(F.pad, padding=[int(side) for side in drawn["random_zoom_out", "padding"]])

    def random_iou_crop(self, _: Any, drawn: Any) -> None:
        if ("random_iou_crop", "crop") not in drawn:
            return
        left, top, width, height = map(int, drawn["random_iou_crop", "crop"])
        corners = F.convert_bounding_box_format(
            self.boxes.as_subclass(torch.Tensor), self.boxes.format, tv_tensors.BoundingBoxFormat.XYXY
        )
        x, y = 0.5 * (corners[:, 0] + corners[:, 2]), 0.5 * (corners[:, 1] + corners[:, 3])
        inside = (left < x) & (x < left + width) & (top < y) & (y < top + height)
        assert inside.any()
        self.crop((left, top, width, height))
        self.boxes[~inside] = 0

    def sanitize_bounding_boxes(self, arguments: Any, _: Any) -> None:
        self.boxes, valid = F.sanitize_bounding_boxes(self.boxes, **arguments)
        self.labels = self.labels[valid]


def assert_equal(got: np.ndarray, wanted: torch.Tensor, what: str, last_bits: bool = False) -> None:
    """Compares every number; NaN equals NaN, and the sign of zero may differ, because arithmetic does not define it.

    last_bits: floats may differ in the last bits, because torch leaves the order of summation to the machine's BLAS.
    """
    expected = wanted.as_subclass(torch.Tensor).numpy()
    assert got.dtype == expected.dtype, what
    assert got.shape == expected.shape, what
    same = np.array_equal(got, expected, equal_nan=got.dtype.kind == "f")
    if last_bits and got.dtype.kind == "f":
        same = np.allclose(got, expected, rtol=2.0**-22, atol=2.0**-18, equal_nan=True)
    assert same, f"{what}: {got.shape} {expected.shape} {got} {expected}"
