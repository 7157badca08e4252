# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' mosaic of four photos, as a function for :meth:`Dataset.map`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .dataset import Dataset

_FILL = 114
_LEAST_SIDE, _LEAST_AREA, _MOST_ASPECT = 2, 0.1, 100  # as in ultralytics' RandomPerspective.box_candidates


class Mosaic:
    """Joins a sample with three others, drawn at random, at a random point; then scales, translates and crops.

    The geometry is that of ``Mosaic`` (n=4) and ``RandomPerspective`` in ``ultralytics/data/augment.py``, without
    rotation, shear and perspective, which are 0 by default there. Pixels between photos are not interpolated. Boxes are
    clipped, and dropped if less than a tenth of their area remains or a side has at most 2 pixels.

    The function reads a sample's fields ``image`` (uint8, 3 channels), ``boxes`` and ``labels``, and returns only these
    fields: an image of ``size`` x ``size`` pixels, float32 boxes in its pixels, and their labels.
    """

    def __init__(self, photos: Dataset, size: int, *, scale: float, translate: float, flip: float) -> None:
        self._photos, self._size = photos, size
        self._scale, self._translate, self._flip = scale, translate, flip

    def __call__(self, fields: dict[str, Any], *, rng: np.random.Generator) -> dict[str, Any]:
        size = self._size
        others = [
            self._photos.sample(int(i), seed=int(rng.integers(2**31)), output="numpy")._asdict()
            for i in rng.integers(0, len(self._photos), 3)
        ]
        center = rng.uniform(0.5 * size, 1.5 * size, 2).astype(int)  # x, y on a canvas of twice the size
        scale = rng.uniform(1 - self._scale, 1 + self._scale)
        shift = rng.uniform(0.5 - self._translate, 0.5 + self._translate, 2) * size - scale * size
        image = np.full((3, size, size), _FILL, np.uint8)
        boxes, labels = [], []
        for at, sample in enumerate((fields, *others)):
            photo = sample["image"]
            height, width = photo.shape[1:]
            left = center[0] - (width if at % 2 == 0 else 0)
            top = center[1] - (height if at < 2 else 0)
            # columns and rows of the photo that are on the canvas
            columns = (max(-left, 0), min(2 * size - left, width))
            rows = (max(-top, 0), min(2 * size - top, height))
            if columns[0] < columns[1] and rows[0] < rows[1]:
                x, at_x = _positions(columns, left, scale, shift[0], size)
                y, at_y = _positions(rows, top, scale, shift[1], size)
                if x and y:
                    image[:, y.start : y.stop, x.start : x.stop] = _resampled(photo, at_y, at_x, rows, columns)
            boxes.append(np.clip(sample["boxes"] + np.array([left, top] * 2), 0, 2 * size))
            labels.append(sample["labels"])
        moved, valid = self._moved(np.concatenate(boxes), scale, shift)
        if rng.random() < self._flip:
            image = np.ascontiguousarray(image[:, :, ::-1])
            moved = np.stack([size - moved[:, 2], moved[:, 1], size - moved[:, 0], moved[:, 3]], axis=1)
        return {"image": image, "boxes": moved[valid], "labels": np.concatenate(labels)[valid]}

    def _moved(self, boxes: Any, scale: float, shift: Any) -> tuple[Any, Any]:
        """Returns the boxes after the scaling and translation, clipped, and which of them remain."""
        scaled = boxes * scale + np.concatenate([shift, shift])
        moved = np.clip(scaled, 0, self._size).astype(np.float32)
        before, after = scaled[:, 2:] - scaled[:, :2], moved[:, 2:] - moved[:, :2]
        area, remaining = before.prod(axis=1), after.prod(axis=1)
        aspect = after.max(axis=1) / np.maximum(after.min(axis=1), 1e-6)
        return moved, (after.min(axis=1) > _LEAST_SIDE) & (remaining > _LEAST_AREA * area) & (aspect < _MOST_ASPECT)


def _positions(span: tuple[int, int], start: int, scale: float, shift: float, size: int) -> tuple[range, Any]:
    """Returns the pixels of the result that a photo's columns (or rows) cover, and their positions in the photo."""
    first = int(np.ceil(scale * (start + span[0]) + shift - 0.5 * scale))
    end = int(np.ceil(scale * (start + span[1]) + shift - 0.5 * scale))
    pixels = range(min(max(first, 0), size), min(max(end, 0), size))
    return pixels, (np.arange(pixels.start, pixels.stop) - shift) / scale - start


def _resampled(photo: Any, y: Any, x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """Returns the photo at these positions, interpolated bilinearly as cv2.warpAffine does."""
    above, below, down = _neighbours(y, rows)
    left, right, along = _neighbours(x, columns)
    start = left[0]
    part = photo[:, :, start : right[-1] + 1]
    lines = _between(part.take(above, 1), part.take(below, 1), down[:, None])
    return (_between(lines.take(left - start, 2), lines.take(right - start, 2), along) + 0.5).astype(np.uint8)


def _between(first: Any, second: Any, weight: Any) -> Any:
    made = np.subtract(second, first, dtype=np.float32)
    made *= weight
    made += first
    return made


def _neighbours(positions: Any, span: tuple[int, int]) -> tuple[Any, Any, Any]:
    clipped = np.clip(positions, span[0], span[1] - 1)
    low = clipped.astype(int)
    return low, np.minimum(low + 1, span[1] - 1), (clipped - low).astype(np.float32)
