# SPDX-License-Identifier: Apache-2.0
"""Boxes and keypoints in loaders: the same for any threads and after a resume, with caches, bad samples, several
images, packed data, and torchvision's types.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torchvision", reason="torchvision, whose rules these are, is not installed")

import torch
from made_data import write_tar
from made_fields import key, npy
from made_targets import FLOATS, files_of, make_targets, png
from torchvision import tv_tensors

import feedline
from feedline import packing

COUNT = 48
NAMES = tuple(field.partition(":")[0] for field in FLOATS)


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_targets(tmp_path_factory.mktemp("loading") / "x.tar", COUNT)


def detection(dataset: feedline.Dataset) -> feedline.Dataset:
    dataset = dataset.random_photometric_distort().random_zoom_out(side_range=(1, 2)).random_iou_crop()
    return dataset.random_horizontal_flip().resize((32, 40)).sanitize_bounding_boxes()


def as_bytes(value: Any) -> Any:
    return [as_bytes(row) for row in value] if isinstance(value, list) else np.asarray(value).tobytes()


def batches(loader: Any) -> list[list[Any]]:
    return [[as_bytes(field) for field in batch] for batch in loader]


@pytest.mark.parametrize("form", ["list", "pad"])
def test_threads_and_resume_change_nothing(tar: Path, form: str) -> None:
    data = detection(feedline.open(tar, fields=FLOATS)).collate(form, fields=NAMES[2:])

    def loader(threads: int) -> Any:
        return data.loader(5, shuffle=True, seed=3, num_workers=threads, output="numpy")

    wanted = batches(loader(1))
    assert len(wanted) == 10
    for threads in (2, 3, 8):
        assert batches(loader(threads)) == wanted
    for seen in (1, 4, 9):
        first, second = loader(2), loader(3)
        iterator = iter(first)
        for _ in range(seen):
            next(iterator)
        second.load_state_dict(first.state_dict())
        assert batches(second) == wanted[seen:]


def test_padded_rows_report_their_lengths(tar: Path) -> None:
    data = (
        feedline.open(tar, fields=FLOATS)
        .resize((32, 32))
        .sanitize_bounding_boxes(labels=NAMES[3:])
        .collate("pad", fields=NAMES[2:])
    )
    for start, batch in enumerate(data.loader(6, output="numpy")):
        for row in range(6):
            sample = data[start * 6 + row]
            count = len(sample.labels_npy)
            assert batch.floats_npy_length[row] == batch.points_npy_length[row] == batch.labels_npy_length[row] == count
            assert np.array_equal(batch.floats_npy[row, :count], sample.floats_npy)
            assert np.array_equal(batch.points_npy[row, :count], sample.points_npy)
            assert not batch.floats_npy[row, count:].any()


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_cache_changes_nothing(tar: Path, tmp_path: Path, kind: str) -> None:
    start = feedline.open(tar, fields=FLOATS).boxes("floats.npy", "XYWH").resize((50, 60)).center_crop(44)
    start = start.sanitize_bounding_boxes()
    where = kind if kind == "memory" else tmp_path / "x.pixels"
    plain, cached = detection(start), detection(start.cache(where))
    epochs = [batches(plain.loader(8, seed=1, epochs=2, output="numpy"))]
    epochs += [batches(cached.loader(8, seed=1, epochs=2, num_workers=n, output="numpy")) for n in (1, 3)]
    assert epochs[0] == epochs[1] == epochs[2]
    assert as_bytes(list(plain[7])) == as_bytes(list(cached[7]))
    if kind == "file":
        again = detection(feedline.open(where).boxes("floats.npy", "XYWH"))
        assert [role[1] for role in again._engine.roles()] == ["image", "mask", "boxes", "keypoints", "array"]
        assert [len(row.floats_npy) for row in again] == [len(row.labels_npy) for row in again]
    with pytest.raises(feedline.ConfigError, match=r"boxes: .*place it before cache"):
        feedline.open(tar, fields=FLOATS).resize((9, 9)).cache().boxes("floats.npy", "XYWH")
    with pytest.raises(feedline.ConfigError, match="cache: random_iou_crop"):
        feedline.open(tar, fields=FLOATS).random_iou_crop().cache()


def test_several_images_of_a_sample_are_cut_as_its_boxes(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    members = []
    for i in range(20):
        pixels = rng.integers(0, 255, (40, 50, 3), dtype=np.uint8)
        members += [(f"{key(i)}.{name}.png", png(pixels)) for name in ("left", "right")]
        members.append((f"{key(i)}.npy", npy(rng.uniform(0, 40, (6, 4)).astype(np.float32))))
    write_tar(tmp_path / "x.tar", members)
    data = feedline.open(tmp_path / "x.tar", fields=("left.png", "npy:boxes", "right.png")).boxes("npy", unsound="keep")
    data = data.random_zoom_out(fill=9).random_iou_crop().random_vertical_flip().resize((24, 24))
    for row in data:
        assert np.array_equal(row.left_png, row.right_png)
    assert len({row.left_png.tobytes() for row in data}) == 20


def test_what_is_drawn_and_reported_of_them(tar: Path) -> None:
    data = detection(feedline.open(tar, fields=FLOATS).boxes("floats.npy", "CXCYWH", None))
    assert data.schema["floats.npy"] == ((-1, 4), "float32")
    assert data.schema["points.npy"] == ((-1, -1, 2), "float32")
    assert data.schema["labels.npy"].form == "list"
    assert "boxes (CXCYWH), transformed like the images" in data.explain()
    assert data.operations[0] == "boxes(CXCYWH, clamping_mode=None, fields=('floats.npy',))"
    crops = [entry.values for i in range(COUNT) for entry in data.draw(i) if entry.operation == "random_iou_crop"]
    assert len(crops) > COUNT // 2
    assert data.draw(5, epoch=1) != data.draw(5)
    assert data.draw(5) == data.draw(5)
    assert data.inspect().samples == COUNT


def bad_tar(path: Path, bad: dict[int, bytes], suffix: str = "npy") -> Path:
    members = []
    for i in range(12):
        files = files_of(i)
        members += [(f"{key(i)}.png", files["png"]), (f"{key(i)}.{suffix}", bad.get(i, files["floats.npy"]))]
    write_tar(path, members)
    return path


BAD = {
    "three numbers": (npy(np.zeros((2, 3), np.float32)), r"boxes of shape \(2, 3\); they must be \(N, 4\)"),
    "one box": (npy(np.zeros(4, np.float32)), r"boxes of shape \(4\)|boxes of shape \(4,\)"),
    "words": (b'[["a", 1, 2, 3]]', "lists of numbers: expected a number at byte 2"),
    "ragged": (b"[[1, 2, 3, 4], [5, 6]]", "a list has length 2, but an earlier list has length 4"),
    "truth": (npy(np.zeros((2, 4), bool)), "boxes of bool; they must be floats or integers"),
    "rotated": (npy(np.zeros((2, 5), np.float32)), r"boxes of shape \(2, 5\).*rotated boxes cannot be transformed"),
    "polygons": (npy(np.zeros((1, 8), np.float32)), r"boxes of shape \(1, 8\).*rotated boxes cannot be transformed"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_boxes_are_the_samples_error(tmp_path: Path, name: str) -> None:
    content, says = BAD[name]
    path = bad_tar(tmp_path / "x.tar", {7: content})
    data = (
        feedline.open(path, fields=("png", "npy:boxes"))
        .boxes("npy", unsound="keep")
        .resize((20, 20))
        .random_horizontal_flip()
    )
    for chain in (data, data.random_iou_crop().resize((20, 20))):
        with pytest.raises(feedline.DataError, match=says) as raised:
            chain[7]
        assert raised.value.key == key(7)
        assert "field 'npy'" in str(raised.value)
        for policy in ("skip", "replace"):
            loader = chain.loader(4, on_error=policy, num_workers=2)
            assert sum(len(batch.png) for batch in loader) == (11 if policy == "skip" else 12)
            assert [bad.key for bad in loader.errors] == [key(7)]
        with pytest.raises(feedline.DataError, match=says):
            list(chain.loader(4))


def test_labels_that_are_not_as_many_as_boxes_are_the_samples_error(tmp_path: Path) -> None:
    members = []
    for i in range(3):
        labels = npy(np.arange(5 if i == 2 else 4))
        members += [(f"{key(i)}.png", files_of(i)["png"]), (f"{key(i)}.boxes.npy", npy(np.ones((4, 4), np.float32)))]
        members.append((f"{key(i)}.labels.npy", labels))
    write_tar(tmp_path / "x.tar", members)
    data = feedline.open(tmp_path / "x.tar", fields=("png", "labels.npy", "boxes.npy:boxes")).resize((9, 9))
    data = data.sanitize_bounding_boxes()
    assert len(data[1].labels_npy) == len(data[1].boxes_npy) == 0
    with pytest.raises(feedline.DataError, match=r"'labels\.npy'.*does not match the 4 boxes"):
        data[2]


def test_lists_in_json_and_other_dtypes(tmp_path: Path) -> None:
    lists = {0: b"[[1, 2.5, 30, 4e1],\n [0, 0, -1, NaN]]", 1: b" [] ", 2: b"[[1,2,3,4]]"}
    path = bad_tar(tmp_path / "x.tar", lists | {i: json.dumps([[i] * 4]).encode() for i in range(3, 12)}, "json")
    rows = [
        row.json
        for row in feedline.open(path, fields=("png", "json:boxes")).boxes("json", unsound="keep").collate("list")
    ]
    assert rows[0].tolist()[0] == [1, 2.5, 30, 40]
    assert np.isnan(rows[0][1, 3])
    assert rows[1].shape == (0, 4)
    assert all(row.dtype == np.float32 for row in rows)
    stored = {
        i: npy(np.arange(8).reshape(2, 4).astype(dtype))
        for i, dtype in enumerate((np.float64, np.float16, np.int16, np.int64, np.uint32, np.float32))
    } | {6: npy(np.array([])), 7: npy(np.zeros((0, 4)))}
    path = bad_tar(tmp_path / "y.tar", stored)
    for i, row in enumerate(
        feedline.open(path, fields=("png", "npy:boxes")).boxes("npy", unsound="keep").collate("list", fields="png")
    ):
        assert row.npy.dtype == np.float32
        if i < 6:
            assert np.array_equal(row.npy, np.arange(8).reshape(2, 4))
        elif i < 8:
            assert row.npy.shape == (0, 4)


def test_what_cannot_be_is_reported_before_the_first_read(tar: Path) -> None:
    data = feedline.open(tar, fields=FLOATS)
    none = feedline.open(tar, fields=NAMES[:2])
    two = feedline.open(tar, fields=("png", "floats.npy:boxes", "integers.npy:boxes"))
    for dataset, says in ((none, "there are none"), (two, "there are 2 boxes fields")):
        for chain in (dataset.random_iou_crop(), dataset.sanitize_bounding_boxes(labels=None)):
            with pytest.raises(feedline.ConfigError, match=says):
                chain.resize((9, 9)).loader(2)
    with pytest.raises(feedline.ConfigError, match="there is no field 'kinds'"):
        data.resize((9, 9)).sanitize_bounding_boxes(labels="kinds").loader(2)
    with pytest.raises(feedline.ConfigError, match="'png' is image, not an array"):
        data.resize((9, 9)).sanitize_bounding_boxes(labels="png").loader(2)
    with pytest.raises(feedline.ConfigError, match="boxes: 'png' is image"):
        data.boxes("png")
    for rotated in ("XYWHR", "cxcywhr", "XYXYXYXY"):
        with pytest.raises(
            feedline.ConfigError, match=rf"'{rotated.upper()}' is for rotated boxes, which are not supported"
        ):
            data.boxes("floats.npy", rotated)
    with pytest.raises(feedline.ConfigError, match=r"must be at least 1, got 0\.5"):
        data.sanitize_bounding_boxes(0.5)
    with pytest.raises(feedline.ConfigError, match=r"points\.npy' is keypoints, which have no colours"):
        data.grayscale(fields="points.npy")
    with pytest.raises(feedline.ConfigError, match="would repeat its boxes"):
        data.pad(3, padding_mode="reflect").resize((9, 9)).loader(2)
    with pytest.raises(feedline.ConfigError, match="which have no colours"):
        data.resize((9, 9)).trivial_augment_wide(fields=("png", "floats.npy"))
    for wrong in ({"min_scale": 0}, {"max_scale": 1.5}, {"trials": 0}, {"sampler_options": ()}, {"min_scale": 2}):
        with pytest.raises(feedline.ConfigError, match="random_iou_crop: "):
            data.random_iou_crop(**wrong)
    for wrong in ({"p": 2}, {"side_range": (0.5, 2)}, {"side_range": (1, 1e9)}, {"fill": 300}):
        with pytest.raises(feedline.ConfigError, match="random_zoom_out: "):
            data.random_zoom_out(**wrong)
    with pytest.raises(feedline.ConfigError, match="random_photometric_distort: "):
        data.random_photometric_distort(hue=(-1, 1))
    with pytest.raises(feedline.ConfigError, match=r"use image, mask, .*audio or video"):
        feedline.open(tar, fields=("png", "floats.npy:box"))


def test_packed_shards_keep_them(tar: Path, tmp_path: Path) -> None:
    for i in range(5):
        files = files_of(i)
        for folder, name in (("images", "png"), ("boxes", "floats.npy")):
            path = tmp_path / "x" / folder / f"{key(i)}.{name.rpartition('.')[2]}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[name])
    patterns = ("images/{key}.png", "boxes/{key}.npy:boxes")
    report = packing.pack(tmp_path / "x", tmp_path / "out", fields=patterns)
    packed = feedline.open(report.pattern, fields=("images.png", "boxes.npy:boxes")).boxes("boxes.npy", unsound="keep")
    ours = feedline.open(tmp_path / "x", fields=patterns).boxes("boxes", unsound="keep")
    for one, other in zip(*(data.resize((20, 30)) for data in (packed, ours)), strict=True):
        assert np.array_equal(one.boxes_npy, other.boxes, equal_nan=True)


def test_tv_tensors_have_format_and_canvas(tar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (
        feedline.open(tar, fields=FLOATS)
        .boxes("floats.npy", "XYWH", unsound="keep")
        .collate("list", fields="labels.npy")
    )
    fixed, any_size = data.resize((20, 30)), data.collate("list", fields=(*NAMES[:2], NAMES[4]))
    plain = list(fixed.loader(6))
    for start, batch in enumerate(fixed.loader(6, output="tv_tensors")):
        assert type(batch.png) is tv_tensors.Image
        assert type(batch.mask_png) is tv_tensors.Mask
        for row in batch.floats_npy:
            assert (type(row), row.canvas_size, row.format.value) == (tv_tensors.BoundingBoxes, (20, 30), "XYWH")
        assert all(type(row) is tv_tensors.KeyPoints and row.canvas_size == (20, 30) for row in batch.points_npy)
        assert torch.equal(batch.png.as_subclass(torch.Tensor), plain[start].png)
        assert all(type(row) is torch.Tensor for row in batch.labels_npy) or type(batch.labels_npy) is torch.Tensor
    for batch in any_size.loader(6, output="tv_tensors"):
        for image, row in zip(batch.png, batch.floats_npy, strict=True):
            assert type(image) is tv_tensors.Image
            assert row.canvas_size == tuple(image.shape[-2:])
    sample = any_size.sample(4, output="tv_tensors")
    assert sample.points_npy.canvas_size == tuple(sample.png.shape[-2:])
    assert type(any_size.sample(4, output="torch").floats_npy) is torch.Tensor
    with pytest.raises(feedline.ConfigError, match="layout"):
        fixed.loader(6, output="tv_tensors", layout="NHWC")
    monkeypatch.setitem(__import__("sys").modules, "torchvision", None)
    for call in (lambda: fixed.loader(6, output="tv_tensors"), lambda: fixed.sample(0, output="tv_tensors")):
        with pytest.raises(feedline.ConfigError, match="requires torchvision"):
            call()
