# SPDX-License-Identifier: Apache-2.0
"""COCO, Pascal VOC and YOLO sets: the written objects, moved with their images, and errors that name damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_annotations as made
import numpy as np
import pytest
from range_server import serving

import feedline
from feedline import packing, verifying

Make = Callable[[Path], Path]
SETS: dict[str, Make] = {"coco": made.coco, "voc": made.voc, "yolo": made.yolo}
CLASSES = {"coco": ("bee", "ant", "cow"), "voc": made.NAMES, "yolo": made.NAMES}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(params=list(SETS))
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def wanted(format: str, number: int) -> tuple[list[list[int]], list[int]]:
    """Returns the boxes and labels of an image."""
    rows = made.objects(number)
    rows = rows[::-1] if format == "coco" else rows  # as written in the JSON
    return [list(box) for _, box in rows], [CLASSES[format].index(name) for name, _ in rows]


def opened(source: Path | str, **options: Any) -> feedline.Dataset:
    """For images of any size."""
    return feedline.open(source, **options).collate("list")


def in_numpy(dataset: feedline.Dataset, batch_size: int = 4, **options: Any) -> list[Any]:
    with dataset.loader(batch_size, seed=5, output="numpy", **options) as loader:
        return list(loader)


def test_objects_are_those_that_were_written(format: str, tmp_path: Path) -> None:
    dataset = opened(SETS[format](tmp_path / "set"))
    count = 9 if format == "voc" else 12
    assert (dataset.format, len(dataset), tuple(dataset.classes)) == (format, count, CLASSES[format])
    assert list(dataset.schema) == ["image", "boxes", "labels"]
    for i in range(count):
        boxes, labels = wanted(format, i)
        one = dataset[i]
        np.testing.assert_allclose(one.boxes, np.array(boxes, np.float32).reshape(-1, 4), atol=1e-5)
        assert (one.boxes.dtype, one.labels.dtype, one.labels.tolist()) == (np.float32, np.int64, labels)
        assert one.image.shape == (3, made.HEIGHT, made.WIDTH)


def test_a_batch_has_lists_of_boxes_and_labels(format: str, tmp_path: Path) -> None:
    dataset = feedline.open(SETS[format](tmp_path / "set")).resize((made.HEIGHT, made.WIDTH))
    first = in_numpy(dataset)[0]
    assert first.image.shape == (4, 3, made.HEIGHT, made.WIDTH)
    assert [len(boxes) for boxes in first.boxes] == [len(labels) for labels in first.labels] == [0, 1, 2, 3]


def test_order_threads_and_ranks_change_nothing(format: str, tmp_path: Path) -> None:
    dataset = opened(SETS[format](tmp_path / "set")).random_horizontal_flip().random_resized_crop(32)

    def rows(**options: Any) -> list[tuple[bytes, ...]]:
        batches = in_numpy(dataset, 3, shuffle=True, **options)
        return [
            (batch.image[i].tobytes(), batch.boxes[i].tobytes(), batch.labels[i].tobytes())
            for batch in batches
            for i in range(len(batch.image))
        ]

    one = rows(num_workers=1)
    assert rows(num_workers=3) == one
    ranks = [rows(rank=rank, world_size=3, uneven="exact") for rank in range(3)]
    assert sorted(row for rank in ranks for row in rank) == sorted(one)


def test_boxes_move_with_the_image_and_labels_go_with_them(format: str, tmp_path: Path) -> None:
    dataset = opened(SETS[format](tmp_path / "set"))
    flipped = dataset.random_horizontal_flip(p=1)
    for i in range(len(dataset)):
        left, right = dataset[i].boxes, flipped[i].boxes
        np.testing.assert_allclose(
            right, np.stack([made.WIDTH - left[:, 2], left[:, 1], made.WIDTH - left[:, 0], left[:, 3]], 1), atol=1e-4
        )
    small = dataset.center_crop((20, 20)).sanitize_bounding_boxes(min_size=3)
    for i in range(len(dataset)):
        boxes, labels = wanted(format, i)
        top, left = (made.HEIGHT - 20) // 2, (made.WIDTH - 20) // 2
        remaining_labels = []
        for (x0, y0, x1, y1), label in zip(boxes, labels, strict=True):
            moved = np.clip([x0 - left, y0 - top, x1 - left, y1 - top], 0, 20)
            if moved[2] - moved[0] >= 3 and moved[3] - moved[1] >= 3:
                remaining_labels.append(label)
        assert small[i].labels.tolist() == remaining_labels, i
        assert len(small[i].boxes) == len(remaining_labels)


def test_a_run_resumes_at_every_batch(format: str, tmp_path: Path) -> None:
    dataset = opened(SETS[format](tmp_path / "set")).random_horizontal_flip()
    whole = [batch.boxes for batch in in_numpy(dataset, 2, shuffle=True)]
    for at in range(len(whole)):
        with dataset.loader(2, seed=5, shuffle=True, output="numpy") as loader:
            batches = iter(loader)
            for _ in range(at):
                next(batches)
            state = loader.state_dict()
        with dataset.loader(2, seed=5, shuffle=True, output="numpy") as loader:
            loader.load_state_dict(state)
            rest = [batch.boxes for batch in loader]
        assert [[box.tobytes() for box in boxes] for boxes in rest] == [
            [box.tobytes() for box in boxes] for boxes in whole[at:]
        ]


def test_coco_gives_every_part(tmp_path: Path) -> None:
    path = made.coco(tmp_path / "set", keypoints=[1, 2, 2, 3, 4, 0])
    fields = (
        "image_id",
        "category_ids",
        "area",
        "iscrowd",
        "annotation_ids",
        "keypoints",
        "visibility",
        "masks",
        "mask",
    )
    dataset = opened(path, fields=fields)
    one = dataset[3]
    rows = made.objects(3)[::-1]
    assert int(one.image_id) == 1003
    assert one.category_ids.tolist() == [made.IDS[made.NAMES.index(name)] for name, _ in rows]
    assert one.area.tolist() == [(b[2] - b[0]) * (b[3] - b[1]) / 2 for _, b in rows]
    assert one.iscrowd.tolist() == [0, 0, 0]
    assert one.annotation_ids.tolist() == [5, 4, 3]
    assert (one.keypoints.shape, one.visibility.tolist()) == ((3, 2, 2), [[2, 0]] * 3)
    assert (one.masks.shape, one.masks.dtype, set(np.unique(one.masks))) == (
        (3, made.HEIGHT, made.WIDTH),
        np.uint8,
        {0, 1},
    )
    labels = [CLASSES["coco"].index(name) + 1 for name, _ in rows]
    expected = np.zeros((made.HEIGHT, made.WIDTH), np.uint8)
    for label, mask in zip(labels, one.masks, strict=True):
        expected[(mask == 1) & (expected == 0)] = label
    expected[one.masks.sum(0) > 1] = 255
    np.testing.assert_array_equal(one.mask, expected)


def test_masks_move_as_the_image_does(tmp_path: Path) -> None:
    dataset = opened(made.coco(tmp_path / "set"), fields=("image", "boxes", "labels", "masks", "mask"))
    plain = [dataset[i] for i in range(12)]
    flipped = dataset.random_horizontal_flip(p=1)
    resized = dataset.resize((24, 32))
    for i, one in enumerate(plain):
        np.testing.assert_array_equal(flipped[i].masks, one.masks[:, :, ::-1])
        np.testing.assert_array_equal(flipped[i].mask, one.mask[:, ::-1])
        np.testing.assert_array_equal(resized[i].masks, one.masks[:, ::2, ::2])
    batch = in_numpy(dataset.resize((24, 32)))[0]
    assert [mask.shape for mask in batch.masks] == [(n, 24, 32) for n in range(4)]
    padded = in_numpy(dataset.resize((24, 32)).collate("pad", fields="masks"))[0]
    assert padded.masks.shape == (4, 3, 24, 32) and padded.masks_length.tolist() == [0, 1, 2, 3]
    with pytest.raises(feedline.ConfigError, match="does not support this form"):
        dataset.collate("stack", fields="masks")


def test_masks_go_with_the_boxes_that_are_left(tmp_path: Path) -> None:
    dataset = opened(made.coco(tmp_path / "set"), fields=("image", "boxes", "labels", "masks", "area"))
    few = dataset.sanitize_bounding_boxes(min_size=10, labels=("labels", "masks", "area"))
    for i in range(12):
        whole, left = dataset[i], few[i]
        keep = (whole.boxes[:, 2:] - whole.boxes[:, :2]).min(1) >= 10 if len(whole.boxes) else np.zeros(0, bool)
        np.testing.assert_array_equal(left.masks, whole.masks[keep])
        np.testing.assert_array_equal(left.area, whole.area[keep])
        np.testing.assert_array_equal(left.labels, whole.labels[keep])


def test_crowds_are_left_out_kept_or_a_mask(tmp_path: Path) -> None:
    runs = {"size": [made.HEIGHT, made.WIDTH], "counts": [0, 5, made.HEIGHT * made.WIDTH - 5]}
    crowd = made.coco_annotation(99, 1001, ("cow", (0, 0, 9, 9)), iscrowd=1, segmentation=runs)
    path = made.change(made.coco(tmp_path / "set"), add_annotations=[crowd])
    assert len(opened(path)[1].labels) == 1
    assert "1 crowd annotations were skipped" in opened(path).explain()
    with_crowd = opened(path, fields=("iscrowd", "crowd_mask"), crowd="keep")[1]
    assert with_crowd.iscrowd.tolist() == [0, 1]
    assert np.argwhere(with_crowd.crowd_mask).tolist() == [[y, 0] for y in range(5)]
    with pytest.raises(feedline.ConfigError, match="crowd"):
        opened(path, crowd="both")  # type: ignore[arg-type]


def test_captions_are_texts(tmp_path: Path) -> None:
    path = made.coco(tmp_path / "set")
    rows = [{"id": i, "image_id": 1000 + i // 2, "caption": f'a "dog" {i} é'} for i in range(24)]
    made.change(path, annotations=rows, categories=[])
    dataset = opened(path)
    assert list(dataset.schema) == ["image", "captions"]
    assert dataset[4].captions == ['a "dog" 8 é', 'a "dog" 9 é']
    assert opened(path, fields="caption")[4].caption == 'a "dog" 8 é'


def test_images_are_found_or_reported(tmp_path: Path) -> None:
    path = made.coco(tmp_path / "set")
    (tmp_path / "set" / "train2017").rename(tmp_path / "else & where")
    with pytest.raises(feedline.ConfigError, match=r"not in any of the usual folders; set images="):
        opened(path)
    assert len(opened(path, images=tmp_path / "else & where")[3].boxes) == 3
    with pytest.raises(feedline.StorageError):
        opened(path, images=tmp_path / "nowhere")
    with pytest.raises(feedline.ConfigError, match="images= is for annotated images"):
        opened(tmp_path, images=tmp_path)


def test_voc_splits_and_masks(tmp_path: Path) -> None:
    root = made.voc(tmp_path / "set")
    assert [opened(root, split="val")[i].labels.tolist() for i in range(3)] == [
        wanted("voc", i)[1] for i in (9, 10, 11)
    ]
    with pytest.raises(feedline.ConfigError, match="there is no list"):
        opened(root, split="test")
    masks = opened(root, fields=("image", "mask", "object_mask"), split="train")
    assert len(masks) == 5  # the list of segmentation
    for i in range(5):
        labels = np.zeros((made.HEIGHT, made.WIDTH), np.uint8)
        for value, (_, (left, top, right, bottom)) in zip((1, 2), made.objects(2 * i), strict=False):
            labels[top:bottom, left:right] = value
        np.testing.assert_array_equal(masks[i].object_mask, labels)
    rest = opened(root, fields=("image", "difficult", "truncated", "poses"))[3]
    assert (rest.difficult.tolist(), rest.truncated.tolist(), rest.poses) == ([0, 0, 1], [0, 1, 0], ["Left"] * 3)


def test_yolo_polygons_are_masks_and_boxes(tmp_path: Path) -> None:
    dataset = opened(made.yolo(tmp_path / "set", masks=True), fields=("image", "boxes", "labels", "masks"))
    reference = opened(made.coco(tmp_path / "coco"), fields=("masks", "boxes"))
    for i in range(12):
        np.testing.assert_array_equal(dataset[i].masks, reference[i].masks[::-1])
        np.testing.assert_allclose(dataset[i].boxes, reference[i].boxes[::-1], atol=1e-4)


def test_a_bad_sample_is_named_and_can_be_left_out(tmp_path: Path) -> None:
    bad = made.coco_annotation(99, 1002, ("cow", (0, 0, 9, 9)), bbox=[1, 2, 3])
    path = made.change(made.coco(tmp_path / "set"), add_annotations=[bad])
    dataset = opened(path)
    with pytest.raises(feedline.DataError, match=r"annotation 99 .*the bbox is not a list of four numbers") as caught:
        dataset[2]
    error = caught.value
    assert (error.shard, error.record, error.key) == (str(path), 2, f"{2:012d}.jpg")
    assert path.read_bytes()[error.offset :].startswith(b'{"id": 99')
    with dataset.loader(4, on_error="skip", error_budget=1, output="numpy") as loader:
        assert sum(len(batch.boxes) for batch in loader) == 11
        assert [one.record for one in loader.errors] == [2]
    found = feedline.inspect(path).findings
    assert [(one.code, one.severity) for one in found] == [("bad_annotation", "error")]
    outside = made.coco_annotation(98, 1004, ("cow", (0, 0, 9, 9)), bbox=[500, 500, 3, 3])
    made.change(path, add_annotations=[outside])
    with pytest.raises(feedline.DataError, match="outside"):
        opened(path)[4]
    assert len(opened(path).sanitize_bounding_boxes()[4].boxes) == 0


def test_a_json_that_is_cut_does_not_open(tmp_path: Path) -> None:
    path = made.coco(tmp_path / "set")
    path.write_text(path.read_text()[:-40])
    with pytest.raises(feedline.DataError, match="at byte"):
        opened(path)
    assert [one.code for one in feedline.inspect(path).findings] == ["bad_json"]


def test_verify_finds_what_is_wrong(format: str, tmp_path: Path) -> None:
    source = SETS[format](tmp_path / "set")
    verified = verifying.verify(source, decode=True)
    assert verified.sound, verified.as_dict()
    image = sorted((tmp_path / "set").rglob("*.jpg"))[0]
    image.write_bytes(image.read_bytes()[:400])
    assert not verifying.verify(source, decode=True).sound
    assert verifying.verify(source).sound  # nothing was decoded
    image.unlink()
    assert verifying.verify(source).sound == (format == "yolo")  # like its folder of images


def test_packed_shards_give_the_same_samples(format: str, tmp_path: Path) -> None:
    dataset = opened(SETS[format](tmp_path / "set"))
    packing.pack(tmp_path / "set" if format == "voc" else dataset.source, tmp_path / "shards", samples_per_shard=5)
    tars = opened(sorted((tmp_path / "shards").glob("*.tar")), fields=("jpg", "boxes.npy:boxes", "labels.npy"))
    assert len(tars) == len(dataset)
    for i in range(len(tars)):
        one, other = dataset[i], tars.collate("list", fields="labels.npy")[i]
        np.testing.assert_array_equal(one.image, other.jpg)
        np.testing.assert_array_equal(one.boxes, other.boxes_npy)
        np.testing.assert_array_equal(one.labels, other.labels_npy)


def test_remote_sets_read_as_local_ones(format: str, tmp_path: Path) -> None:
    source = SETS[format](tmp_path / "set")
    local = opened(source)
    if format != "coco":
        pytest.skip("a folder behind plain http cannot be listed")
    with serving(tmp_path / "set") as server:
        url = server.url(f"annotations/{source.name}")
        remote = opened(url, images=server.url("train2017/"))
        assert [remote[i].boxes.tobytes() + remote[i].image.tobytes() for i in range(12)] == [
            local[i].boxes.tobytes() + local[i].image.tobytes() for i in range(12)
        ]
        assert [[image.tobytes() for image in batch.image] for batch in in_numpy(remote)] == [
            [image.tobytes() for image in batch.image] for batch in in_numpy(local)
        ]


def test_a_cached_table_is_used_and_rebuilt(tmp_path: Path) -> None:
    path = made.coco(tmp_path / "set")
    indexes = tmp_path / "kept"
    indexes.mkdir()
    first = opened(path, index=indexes)
    assert len(list(indexes.iterdir())) == 1
    again = opened(path, index=indexes)
    assert (again.fingerprint if hasattr(again, "fingerprint") else 0, again[3].boxes.tolist()) == (
        first.fingerprint if hasattr(first, "fingerprint") else 0,
        first[3].boxes.tolist(),
    )
    whole = json.loads(path.read_text())
    whole["annotations"] = []
    path.write_text(json.dumps(whole))
    assert len(opened(path, index=indexes)[3].boxes) == 0
