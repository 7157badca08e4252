# SPDX-License-Identifier: Apache-2.0
"""feedline.arrays with images, masks, boxes and keypoints: the same numbers as for the samples of a tar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_data import write_tar
from made_fields import key, npy
from PIL import Image

import feedline

COUNT = 61  # with 0 to 60 objects
HEIGHT, WIDTH = 46, 58
FIELDS = ("image:image", "mask:mask", "boxes:boxes", "points:keypoints")
STORED = ("png", "mask.png", "boxes.npy:boxes", "points.npy:keypoints", "labels.npy")
CHAINS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "none": [],
    "flips": [("random_horizontal_flip", {}), ("random_vertical_flip", {})],
    "resize": [("resize", {"size": (31, 53)})],
    "crop": [("random_resized_crop", {"size": 32})],
    "padded crop": [("random_crop", {"size": 64, "pad_if_needed": True}), ("center_crop", {"size": 40})],
    "trimmed": [("trim_border", {"border_size": 7})],
    "zoom out": [("random_zoom_out", {})],
    "rotation": [("random_rotation", {"degrees": 60, "expand": True})],
    "affine": [("random_affine", {"degrees": 20, "translate": (0.1, 0.2), "scale": (0.7, 1.4), "shear": 9})],
    "perspective": [("random_perspective", {"p": 0.8})],
    "elastic": [("elastic_transform", {"alpha": 30.0})],
    "detection": [
        ("random_photometric_distort", {}),
        ("random_zoom_out", {"p": 0.3}),
        ("random_iou_crop", {}),
        ("random_horizontal_flip", {}),
        ("resize", {"size": 40, "max_size": 60}),
        ("sanitize_bounding_boxes", {}),
    ],
}


class Samples:
    """Images of one size, or of one width and any height, with as many objects as the sample's number."""

    def __init__(self, heights: list[int], points: type = np.float32, labels: type = np.uint8) -> None:
        rng = np.random.default_rng(5)
        self.heights = heights
        self.images = [rng.integers(0, 255, (height, WIDTH, 3), dtype=np.uint8) for height in heights]
        self.masks = [rng.integers(0, 21, (height, WIDTH)).astype(labels) for height in heights]
        self.boxes, self.points, self.labels = [], [], []
        for number, height in enumerate(heights):
            corners = np.sort(rng.uniform(0, 1, (number, 2, 2)) * [WIDTH, height], axis=1)
            self.boxes.append(corners.reshape(-1, 4).astype(points))
            self.points.append((rng.uniform(0, 1, (number, 3, 2)) * [WIDTH, height]).astype(points))
            self.labels.append(np.arange(number, dtype=np.int64) + 100 * number)

    def tar(self, path: Path) -> feedline.Dataset:
        members: list[tuple[str, bytes]] = []
        for i in range(len(self.images)):
            for name, pixels in (("png", self.images[i]), ("mask.png", self.masks[i])):
                file = path.with_suffix(".png")
                Image.fromarray(pixels).save(file, compress_level=1)
                members.append((f"{key(i)}.{name}", file.read_bytes()))
            for name in ("boxes", "points", "labels"):
                members.append((f"{key(i)}.{name}.npy", npy(getattr(self, name)[i])))
        write_tar(path, members)
        return feedline.open(path, fields=STORED)

    def arrays(self, **changed: Any) -> feedline.Dataset:
        def together(parts: list[np.ndarray]) -> Any:
            return np.stack(parts) if len({part.shape for part in parts}) == 1 else feedline.ragged(parts)

        columns = {
            "image": together(self.images),
            "mask": together(self.masks),
            "boxes": feedline.ragged(self.boxes),
            "points": feedline.ragged(self.points),
        }
        return feedline.arrays(**{**columns, "labels": feedline.ragged(self.labels), **changed}, fields=FIELDS)


def with_chain(dataset: feedline.Dataset, chain: list[tuple[str, dict[str, Any]]]) -> feedline.Dataset:
    for name, arguments in chain:
        dataset = getattr(dataset, name)(**arguments)
    names = names_of(dataset)
    return dataset.collate("list", fields=[*names[:2], names[4]])


def names_of(dataset: feedline.Dataset) -> list[str]:
    return [name for name, *_ in dataset._engine.roles()]


def assert_same(ours: Any, theirs: Any) -> None:
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == other.dtype and mine.shape == other.shape
        assert np.array_equal(mine, other)


@pytest.fixture(scope="module")
def even() -> Samples:
    return Samples([HEIGHT] * COUNT)


@pytest.fixture(scope="module")
def even_tar(even: Samples, tmp_path_factory: pytest.TempPathFactory) -> feedline.Dataset:
    return even.tar(tmp_path_factory.mktemp("even") / "x.tar")


@pytest.mark.parametrize("name", CHAINS)
def test_samples_are_those_of_a_tar(even: Samples, even_tar: feedline.Dataset, name: str) -> None:
    ours, theirs = with_chain(even.arrays(), CHAINS[name]), with_chain(even_tar, CHAINS[name])
    sizes = set()
    for i in range(COUNT):
        sample = ours.sample(i, seed=3)
        assert_same(sample, theirs.sample(i, seed=3))
        sizes.add(len(sample[2]))
    assert len(sizes) > 30
    assert sizes == set(range(COUNT)) or "sanitize_bounding_boxes" in str(CHAINS[name])


@pytest.mark.parametrize(("points", "labels"), [(np.int32, np.uint16), (np.float16, np.uint8)])
def test_images_of_any_height_and_other_numbers(tmp_path: Path, points: type, labels: type) -> None:
    samples = Samples([20 + 3 * (i % 11) for i in range(COUNT)], points, labels)
    chain = CHAINS["padded crop"] + CHAINS["flips"]
    ours, theirs = with_chain(samples.arrays(), chain), with_chain(samples.tar(tmp_path / "x.tar"), chain)
    for i in range(COUNT):
        assert_same(ours[i], theirs[i])


@pytest.mark.parametrize("form", ["list", "pad"])
def test_loaders_give_the_batches_of_a_tar_for_any_threads_and_after_a_resume(
    even: Samples, even_tar: feedline.Dataset, form: str
) -> None:
    def loader(dataset: feedline.Dataset, threads: int) -> Any:
        names = names_of(dataset)
        made = dataset.random_iou_crop().random_horizontal_flip().resize((24, 30)).sanitize_bounding_boxes()
        made = made.collate(form, fields=names[2:])
        return made.loader(7, shuffle=True, seed=4, num_workers=threads, output="numpy")

    def as_bytes(batch: Any) -> list[Any]:
        return [[row.tobytes() for row in field] if isinstance(field, list) else field.tobytes() for field in batch]

    wanted = [as_bytes(batch) for batch in loader(even_tar, 1)]
    assert len(wanted) == 9
    for threads in (1, 2, 3, 8):
        assert [as_bytes(batch) for batch in loader(even.arrays(), threads)] == wanted
    first, second = loader(even.arrays(), 2), loader(even.arrays(), 3)
    iterator = iter(first)
    for _ in range(4):
        next(iterator)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert [as_bytes(batch) for batch in second] == wanted[4:]


def test_channels_first_and_tensors_are_the_same(even: Samples) -> None:
    torch = pytest.importorskip("torch")
    last = even.arrays().collate("list", fields="labels")
    planes = np.ascontiguousarray(np.stack(even.images).transpose(0, 3, 1, 2))
    for first in (planes, torch.from_numpy(planes)):
        dataset = even.arrays(image=first).collate("list", fields="labels")
        for i in (0, 30, COUNT - 1):
            assert_same(dataset.resize((20, 20))[i], last.resize((20, 20))[i])
    grey = np.stack(even.images)[..., 0].copy()
    one, other = even.arrays(image=grey), even.arrays(image=grey[:, None])
    one, other = (dataset.collate("list", fields=("image", "mask")) for dataset in (one, other))
    assert np.array_equal(one[7].image, np.repeat(grey[7][None], 3, 0))
    assert np.array_equal(other[7].image, one[7].image)


def test_torchvisions_types_come_from_arrays(even: Samples) -> None:
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    batch = next(iter(even.arrays().resize((24, 30)).loader(5, output="tv_tensors")))
    assert type(batch.image) is tv_tensors.Image and type(batch.mask) is tv_tensors.Mask
    assert [type(row) for row in batch.boxes] == [tv_tensors.BoundingBoxes] * 5
    assert [tuple(row.shape) for row in batch.points] == [(i, 3, 2) for i in range(5)]
    assert batch.boxes[3].canvas_size == (24, 30)


def test_other_columns_stay_as_they_are_and_ragged_ones_are_padded(even: Samples) -> None:
    lengths = np.arange(COUNT)  # the first sample has no row
    words = feedline.ragged(np.arange(lengths.sum(), dtype=np.int16), lengths, pad_value=-7)
    classes = np.arange(COUNT, dtype=np.int64) % 5
    dataset = feedline.arrays(photo=np.stack(even.images), words=words, y=classes, fields="photo:image")
    dataset = dataset.center_crop((HEIGHT, WIDTH))
    batch = next(iter(dataset.loader(4, output="numpy")))
    assert batch._fields == ("photo", "words", "words_length", "y")
    assert batch.words.tolist() == [[-7, -7, -7], [0, -7, -7], [1, 2, -7], [3, 4, 5]]
    assert batch.words_length.tolist() == [0, 1, 2, 3]
    assert batch.y.dtype == np.int64 and batch.y.tolist() == [0, 1, 2, 3]
    assert batch.photo.shape == (4, 3, HEIGHT, WIDTH)


def test_rows_of_pictures_are_mixed_with_their_classes(even: Samples) -> None:
    classes = np.arange(COUNT, dtype=np.int64) % 5
    dataset = feedline.arrays(photo=np.stack(even.images), y=classes, fields="photo:image")
    dataset = dataset.resize((8, 8)).to_dtype("float32", True)
    batch = next(iter(dataset.loader(8, mixup=0.4, num_classes=5, output="numpy")))
    assert batch.y.shape == (8, 5) and np.allclose(batch.y.sum(1), 1)


def test_what_is_written_into_an_array_shows_later(even: Samples) -> None:
    images = np.stack(even.images)
    dataset = feedline.arrays(image=images, fields=["image:image"]).center_crop((HEIGHT, WIDTH))
    loader = dataset.loader(COUNT, output="numpy")
    images[:] = 9
    assert (next(iter(loader)).image == 9).all()
    with pytest.raises(feedline.ConfigError, match="a cache would be a second copy"):
        dataset.cache("memory")
    both = feedline.mix([dataset, dataset])
    assert len(both) == 2 * COUNT
    with pytest.raises(feedline.ConfigError, match="a cache would be a second copy"):
        both.cache("memory")


def test_an_array_may_be_called_fields() -> None:
    assert feedline.arrays(fields=np.arange(4))[2].fields == 2


# ---- errors, by name ----


def wrong(samples: Samples, number: int, box: list[float]) -> Any:
    boxes = [rows.copy() for rows in samples.boxes]
    boxes[number][3] = box
    return feedline.ragged(boxes)


UNSOUND = {
    "is inverted: its end precedes its start": [40, 5, 12, 30],
    "is inverted: its end precedes": [5, 30, 12, 5],
    "is entirely outside the image, which is 46 x 58": [70, 5, 90, 30],
    "is entirely outside the image": [5, -30, 12, -20],
    "has a value that is not a finite number": [5, float("nan"), 12, 30],
}


@pytest.mark.parametrize("chain", ["none", "resize", "detection"])
@pytest.mark.parametrize("says", UNSOUND)
def test_boxes_that_no_image_has_are_an_error_of_their_sample(even: Samples, says: str, chain: str) -> None:
    dataset = with_chain(even.arrays(boxes=wrong(even, 20, UNSOUND[says])), CHAINS[chain])
    if chain == "detection":  # sanitize_bounding_boxes removes such a box
        assert len(dataset[20].boxes) < 20
        return
    with pytest.raises(feedline.DataError, match=f"box 3, .*{says}") as raised:
        dataset[20]
    assert raised.value.key == "row 20" and "boxes" in str(raised.value)
    loader = dataset.loader(10, on_error="skip", error_budget=1, output="numpy")
    assert sum(len(batch.boxes) for batch in loader) == COUNT - 1
    assert [error.key for error in loader.errors] == ["row 20"]
    unfiltered = dataset.boxes("boxes", unsound="keep")
    assert len(unfiltered[20].boxes) == 20
    if chain == "none":
        assert np.array_equal(unfiltered[20].boxes[3], np.float32(UNSOUND[says]), equal_nan=True)


@pytest.mark.parametrize(("format", "box"), [("XYWH", [40, 5, -3, 30]), ("CXCYWH", [20, 20, 9, -2])])
def test_boxes_of_negative_sides_are_inverted(even: Samples, format: str, box: list[float]) -> None:
    rows = [np.float32([box] * (i == 9)).reshape(-1, 4) for i in range(COUNT)]
    dataset = even.arrays(boxes=feedline.ragged(rows)).collate("list", fields=("image", "mask"))
    with pytest.raises(feedline.DataError, match=rf"box 0, .* \({format}\), is inverted"):
        dataset.boxes("boxes", format)[9]
    assert len(dataset.boxes("boxes", format)[8].boxes) == 0


def test_boxes_at_the_edges_and_without_an_area_are_sound(even: Samples) -> None:
    boxes = np.float32([[-5, -5, 3, 3], [50, 40, 90, 90], [58, 46, 60, 50], [7, 7, 7, 7], [-4, 0, 0, 9]])
    dataset = feedline.arrays(image=np.stack(even.images[:1]), b=boxes[None], fields=("image:image", "b:boxes"))
    dataset = dataset.collate("list", fields="image")
    assert np.array_equal(dataset[0].b, boxes)
    clamped = dataset.pad(0)[0].b
    assert np.array_equal(clamped, np.clip(boxes, 0, [58, 46, 58, 46]))


def test_a_mask_of_another_size_is_an_error_of_its_sample() -> None:
    samples = Samples([HEIGHT] * 9)
    samples.masks[4] = samples.masks[4][:-3]
    dataset = samples.arrays().random_crop(20).collate("list", fields="labels")
    assert len(dataset.sample(3)) == 5
    with pytest.raises(feedline.DataError, match="'mask' has 43 x 58 pixels and 'image' 46 x 58") as raised:
        dataset.sample(4)
    assert raised.value.key == "row 4"


def test_what_cannot_be_is_named_before_a_sample_is_read(even: Samples) -> None:
    images = np.stack(even.images)
    for fields, columns, says in (
        ("x:image", {"image": images}, "fields: array 'x' does not exist; the arrays are image"),
        (["image:image", "image:mask"], {"image": images}, "fields: 'image' occurs twice"),
        ("image:picture", {"image": images}, "\"image\" cannot be 'picture'; use image, mask, boxes"),
        ("image:text", {"image": images}, "\"image\" cannot be 'text'"),
        (3, {"image": images}, "fields must be names with kinds"),
        ([3], {"image": images}, "fields must be names with kinds"),
        ("image:image", {"image": images.astype("float32")}, "the dtype is float32; pixels are uint8"),
        ("image:image", {"image": images[..., :2].copy()}, r"samples have the shape \(46, 58, 2\); images are"),
        (
            "m:mask",
            {"m": images[..., 0].astype("int64")},
            "the dtype is int64; labels are uint8 or uint16: convert the array",
        ),
        ("b:boxes", {"b": np.zeros((4, 3, 5))}, r"samples have the shape \(3, 5\); boxes are \(N, 4\)"),
        ("b:boxes", {"b": np.zeros((4, 4))}, r"samples have the shape \(4\); boxes are"),
        ("k:keypoints", {"k": np.zeros((4, 4))}, r"keypoints are \(N, 2\) or \(N, K, 2\)"),
        ("a:image", {"a": images, "b": np.zeros(3)}, '"b" has 3 rows, "a" has 61 rows'),
    ):
        with pytest.raises(feedline.ConfigError, match=says):
            feedline.arrays(**columns, fields=fields)
    flags = np.zeros((COUNT, 2, 4), dtype=bool)
    with pytest.raises(feedline.ConfigError, match='"b" cannot be boxes: the dtype is bool; use floats or integers'):
        feedline.arrays(image=images, b=flags, fields=["image:image", "b:boxes"])
