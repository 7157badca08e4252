# SPDX-License-Identifier: Apache-2.0
"""The mosaic of four photos: pixels, boxes and their labels, and the same result for any number of threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_annotations
import numpy as np
import pytest

import feedline
from feedline import presets
from feedline.data.mosaic import Mosaic

SIZE = 96


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> feedline.Dataset:
    return feedline.open(made_annotations.coco(tmp_path_factory.mktemp("coco"))).resize_keep_ratio(SIZE, longest=1.0)


class Recorded:
    """A dataset whose samples are `samples`, in the order of the calls."""

    def __init__(self, samples: list[feedline.Batch]) -> None:
        self._samples = iter(samples)

    def __len__(self) -> int:
        return 12

    def sample(self, _index: int, **_: Any) -> feedline.Batch:
        return next(self._samples)


def reference(samples: list[feedline.Batch], seed: int, scale: float, translate: float) -> tuple[Any, Any]:
    """Returns the image as Ultralytics composes it, by an affine transformation of a canvas of twice the size; and a
    mask of the pixels that depend on one photo only.
    """
    from PIL import Image

    rng = np.random.default_rng(seed)
    rng.integers(0, 12, 3)
    rng.integers(2**31), rng.integers(2**31), rng.integers(2**31)
    x, y = rng.uniform(0.5 * SIZE, 1.5 * SIZE, 2).astype(int)
    factor = rng.uniform(1 - scale, 1 + scale)
    shift = rng.uniform(0.5 - translate, 0.5 + translate, 2) * SIZE - factor * SIZE
    canvas = np.full((6 * SIZE, 6 * SIZE, 3), 114, np.uint8)  # with a border of 2 x SIZE
    of_photo = np.zeros((6 * SIZE, 6 * SIZE), np.uint8)
    for at, sample in enumerate(samples):
        photo = sample.image.transpose(1, 2, 0)
        height, width = photo.shape[:2]
        left, top = 2 * SIZE + x - width * (at % 2 == 0), 2 * SIZE + y - height * (at < 2)
        canvas[top : top + height, left : left + width] = photo
        of_photo[top : top + height, left : left + width] = 60 * (at + 1)
    inside = np.zeros((6 * SIZE, 6 * SIZE), bool)
    inside[2 * SIZE : 4 * SIZE, 2 * SIZE : 4 * SIZE] = True
    canvas[~inside], of_photo[~inside] = 114, 0
    a, b = 1 / factor, [2 * SIZE - one / factor - 0.5 / factor + 0.5 for one in shift]
    done = [
        np.asarray(Image.fromarray(one).transform((SIZE, SIZE), Image.Transform.AFFINE, (a, 0, b[0], 0, a, b[1]), 2))
        for one in (canvas, of_photo)
    ]
    around = np.pad(done[1], 1, mode="edge")
    neighbours = [around[1 + i : SIZE + 1 + i, 1 + j : SIZE + 1 + j] for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return done[0].transpose(2, 0, 1), np.logical_and.reduce([one == done[1] for one in neighbours])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", [0.0, 0.5])
def test_pixels_are_those_of_an_affine_transformation(photos: feedline.Dataset, seed: int, scale: float) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    chosen = np.random.default_rng(seed).integers(0, 12, 3)
    samples = [photos[i] for i in (5, *chosen)]
    joined = Mosaic(Recorded(samples[1:]), SIZE, scale=scale, translate=0.1, flip=0.0)  # type: ignore[arg-type]
    made = joined(samples[0]._asdict(), rng=np.random.default_rng(seed))["image"]
    expected, certain = reference(samples, seed, scale, 0.1)
    assert certain.mean() > 0.8
    difference = np.abs(made.astype(int) - expected)[:, certain]
    assert difference.max() <= 1 and made.shape == (3, SIZE, SIZE)


def colored(count: int) -> list[dict[str, Any]]:
    """Returns samples with a black photo, and a rectangle each, whose brightness is its label."""
    rng, made = np.random.default_rng(3), []
    for i in range(count):
        image = np.zeros((3, int(rng.integers(60, SIZE)), int(rng.integers(60, SIZE))), np.uint8)
        left, top = rng.integers(2, 30, 2)
        right, bottom = left + rng.integers(8, 25), top + rng.integers(8, 25)
        image[:, top:bottom, left:right] = 130 + i
        boxes = np.array([[left, top, right, bottom]], np.float32)
        made.append({"image": image, "boxes": boxes, "labels": np.array([130 + i])})
    return made


class Photo(dict[str, Any]):
    def _asdict(self) -> dict[str, Any]:
        return self


@pytest.mark.parametrize("flip", [0.0, 1.0])
def test_boxes_and_labels_follow_their_objects(flip: float) -> None:
    samples = colored(12)

    class Photos:
        def __len__(self) -> int:
            return 12

        def sample(self, i: int, **_: Any) -> Photo:
            return Photo(samples[i])

    joined = Mosaic(Photos(), SIZE, scale=0.5, translate=0.1, flip=flip)  # type: ignore[arg-type]
    seen = 0
    for seed in range(60):
        made = joined(samples[seed % 12], rng=np.random.default_rng(seed))
        gray = made["image"][0]
        for (left, top, right, bottom), label in zip(made["boxes"], made["labels"], strict=True):
            inside = gray[int(np.ceil(top)) + 1 : int(bottom) - 1, int(np.ceil(left)) + 1 : int(right) - 1]
            if inside.size:
                assert (inside == label).all(), (seed, inside, label)
                seen += 1
        shown = [label for label in range(130, 142) if (gray == label).sum() > 60]
        assert set(shown) <= set(made["labels"].tolist())
    assert seen > 60


def test_the_preset_is_the_same_for_any_number_of_threads(tmp_path: Path) -> None:
    source = feedline.open(made_annotations.coco(tmp_path))
    train, options = presets.yolo(source, size=SIZE, batch_size=4)
    epochs = []
    for threads in (1, 3):
        with train.loader(**options, num_workers=threads, output="numpy") as loader:
            epochs.append([list(loader), list(loader)])
    for one, other in zip(epochs[0][0] + epochs[0][1], epochs[1][0] + epochs[1][1], strict=True):
        assert one.image.shape == (4, 3, SIZE, SIZE) and one.image.dtype == np.uint8
        np.testing.assert_array_equal(one.image, other.image)
        for i in range(4):
            np.testing.assert_array_equal(one.boxes[i], other.boxes[i])
            assert one.labels[i].tolist() == other.labels[i].tolist() and one.boxes[i].shape == (len(one.labels[i]), 4)
            assert (one.boxes[i] >= 0).all() and (one.boxes[i] <= SIZE).all()
    first, second = epochs[0]
    assert any((a.image != b.image).any() for a, b in zip(first, second, strict=True)), "another epoch, other mosaics"
    assert sum(len(labels) for batch in first for labels in batch.labels) > 12 * 18 / 12, "objects of several photos"


def test_without_the_mosaic_photos_are_fitted(tmp_path: Path) -> None:
    train, options = presets.yolo(made_annotations.coco(tmp_path), size=SIZE, batch_size=4, mosaic=False)
    names = [operation.partition("(")[0] for operation in train.operations]
    assert names[:3] == ["letterbox", "color_jitter", "random_affine"] and names[-1] == "sanitize_bounding_boxes"
    with train.loader(**options, output="numpy") as loader:
        for batch in loader:
            assert batch.image.shape == (4, 3, SIZE, SIZE) and len(batch.boxes) == len(batch.labels) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"scale": 1.0}, "scale=1.0 must be"), ({"translate": -0.1}, "translate=-0.1"), ({"size": 0}, "size")],
)
def test_wrong_arguments(arguments: dict[str, Any], said: str, photos: feedline.Dataset) -> None:
    with pytest.raises(feedline.ConfigError, match=said):
        presets.yolo(photos, **arguments)


def test_a_dataset_without_boxes(folder: Path) -> None:
    with pytest.raises(feedline.ConfigError, match=r"yolo: the dataset has no field 'boxes'; the fields are"):
        presets.yolo(folder)
