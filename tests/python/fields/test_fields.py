# SPDX-License-Identifier: Apache-2.0
"""Samples with any fields, from tars and folders, compared with Pillow, NumPy and json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_fields import (
    EXTENSIONS,
    PATTERNS,
    image_of,
    make_folder,
    make_tar,
    mask_of,
    nearest,
    npy,
    palette_png,
    sample,
)

import feedline

COUNT = 11


@pytest.fixture(params=["tar", "folder"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, tuple[str, ...], list[dict[str, bytes]]]:
    samples = [sample(number) for number in range(COUNT)]
    if request.param == "tar":
        return make_tar(tmp_path / "x.tar", samples), EXTENSIONS, samples
    return make_folder(tmp_path / "x", samples), PATTERNS, samples


def opened(source: Any, **options: Any) -> feedline.Dataset:
    path, fields, _ = source
    return feedline.open(path, fields=fields, **options)


def check(row: Any, files: dict[str, bytes], boxes: np.ndarray) -> None:
    left, right, mask, got_boxes, about, text, label = row
    assert np.array_equal(np.asarray(left), image_of(files["left.jpg"]).transpose(2, 0, 1)[:, 4:44, 10:50])
    assert np.array_equal(np.asarray(right), image_of(files["right.jpg"]).transpose(2, 0, 1)[:, 4:44, 10:50])
    assert np.array_equal(np.asarray(mask), mask_of(files)[4:44, 10:50])
    assert np.array_equal(np.asarray(got_boxes), boxes)
    assert about == json.loads(files["json"])
    assert text == files["txt"].decode()
    assert int(label) == int(files["cls"])


def boxes_of(files: dict[str, bytes]) -> np.ndarray:
    import io

    return np.load(io.BytesIO(files["boxes.npy"]))


def test_samples_are_what_pillow_numpy_and_json_read(source: Any) -> None:
    samples = source[2]
    data = opened(source).center_crop(40).collate("list", fields=[name(source, 3)])
    assert len(data) == COUNT
    for i in range(COUNT):
        check(data[i], samples[i], boxes_of(samples[i]))


def name(source: Any, index: int) -> str:
    return (
        EXTENSIONS[index]
        if source[1] is EXTENSIONS
        else ("left", "right", "masks", "boxes", "about", "captions", "label")[index]
    )


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_hold_the_same_rows(source: Any, threads: int) -> None:
    samples = source[2]
    data = opened(source).center_crop(40).collate("list", fields=[name(source, 3)])
    loader = data.loader(4, shuffle=True, seed=3, num_workers=threads, output="numpy")
    seen = []
    for batch in loader:
        for row in zip(*batch, strict=True):
            number = row[4]["id"]
            seen.append(number)
            check(row, samples[number], boxes_of(samples[number]))
    assert sorted(seen) == list(range(COUNT))


def test_boxes_are_padded_with_their_lengths(source: Any) -> None:
    samples = source[2]
    field = name(source, 3)
    data = opened(source).center_crop(40).collate("pad", fields=field)
    assert data.schema[field].form == "pad"
    start = 0
    for batch in data.loader(4, output="numpy"):
        boxes, lengths = batch[3], batch[4]
        rows = [boxes_of(files) for files in samples[start : start + len(boxes)]]
        assert lengths.tolist() == [len(row) for row in rows]
        assert boxes.shape[1:] == (max(map(len, rows)), 4)
        for got, row in zip(boxes, rows, strict=True):
            assert np.array_equal(got[: len(row)], row)
            assert not got[len(row) :].any()
        start += len(boxes)


def test_the_schema_defines_form_and_kind(source: Any) -> None:
    schema = opened(source).center_crop(8).collate("list", fields=name(source, 3)).schema
    assert [(spec.form, spec.kind) for spec in schema.values()] == [
        ("stack", "array"),
        ("stack", "array"),
        ("stack", "array"),
        ("list", "array"),
        ("list", "json"),
        ("list", "text"),
        ("stack", "array"),
    ]
    assert schema[name(source, 2)] == ((8, 8), "uint8")


@pytest.mark.parametrize("size", [(17, 23), (48, 60), (91, 130), (1, 1)])
def test_masks_resize_as_torchvision_resizes_them(tmp_path: Path, size: tuple[int, int]) -> None:
    files = sample(3)
    data = feedline.open(make_tar(tmp_path / "x.tar", [files]), fields=["mask.png"]).resize(size)
    labels = mask_of(files)
    got = np.asarray(data[0][0])
    assert np.array_equal(got, nearest(labels, *size))
    torch = pytest.importorskip("torch", reason="torch is not installed")
    theirs = torch.nn.functional.interpolate(torch.from_numpy(labels.copy())[None, None], size=size, mode="nearest")
    assert np.array_equal(got, theirs[0, 0].numpy())


def test_geometry_is_drawn_once_for_image_and_mask(tmp_path: Path) -> None:
    """If nothing is resized, an image that shows the labels must be cropped and flipped like the mask."""
    labels = np.random.default_rng(1).integers(0, 250, (50, 70))
    from made_data import encoded

    grey = encoded(np.repeat(labels[:, :, None], 3, axis=2).astype(np.uint8), "PNG")
    path = make_tar(tmp_path / "x.tar", [{"png": grey, "mask.png": palette_png(labels)}] * 20)
    data = (
        feedline.open(path, fields=("png", "mask.png"))
        .random_horizontal_flip()
        .random_crop(32, padding=4)
        .random_vertical_flip()
    )
    different = set()
    for epoch in range(3):
        for i in range(20):
            image, mask = data.sample(i, seed=5, epoch=epoch)
            assert np.array_equal(image[0], mask)
            different.add(mask.tobytes())
    assert len(different) > 50


def test_colour_is_for_images_alone(tmp_path: Path) -> None:
    files = sample(2)
    path = make_tar(tmp_path / "x.tar", [files])
    data = feedline.open(path, fields=("left.jpg", "mask.png")).center_crop(40)
    coloured = data.color_jitter(0.4, 0.4, 0.4, 0.1).normalize((0.5, 0.5, 0.5), (0.2, 0.2, 0.2))
    assert np.array_equal(coloured[0][1], data[0][1])
    assert coloured[0][1].dtype == np.uint8
    assert coloured[0][0].dtype == np.float32


def test_operations_for_some_fields(tmp_path: Path) -> None:
    files = sample(2)
    data = feedline.open(make_tar(tmp_path / "x.tar", [files]), fields=("left.jpg", "right.jpg", "mask.png", "cls"))
    both = data.resize((24, 30)).grayscale(3, fields="right.jpg")
    plain = data.resize((24, 30))
    assert np.array_equal(both[0][0], plain[0][0])
    assert not np.array_equal(both[0][1], plain[0][1])
    assert "fields=('right.jpg',)" in both.operations[-1]
    for call, words in (
        (lambda: data.resize(8, fields="top.jpg"), "no field 'top.jpg'"),
        (lambda: data.resize(8, fields=["cls"]), "is not an image, mask, boxes or keypoints"),
        (lambda: data.grayscale(fields=["mask.png"]), "its labels are not colours"),
        (lambda: data.resize(8, fields=3), "list of field names"),
        (lambda: data.collate("heap"), "form"),
        (lambda: data.collate("pad"), "no field can be padded"),
        (lambda: data.collate("list", fields="cls"), "cls"),
    ):
        with pytest.raises(feedline.ConfigError, match=words):
            call()


@pytest.mark.parametrize("missing", ["error", "skip", "none"])
def test_missing_fields(source: Any, tmp_path: Path, missing: str) -> None:
    samples = [dict(files) for files in source[2]]
    del samples[4]["json"], samples[7]["txt"]
    if source[1] is EXTENSIONS:
        path = make_tar(tmp_path / "lacking.tar", samples)
    else:
        path = make_folder(tmp_path / "lacking", samples)
    data = feedline.open(path, fields=source[1], missing=missing).center_crop(8).collate("list", fields=name(source, 3))
    if missing == "error":
        with pytest.raises(feedline.DataError, match=name(source, 4)):
            data[4]
        batches = list(data.loader(4, on_error="skip", output="numpy"))
        assert sum(len(batch[6]) for batch in batches) == COUNT - 2
    elif missing == "skip":
        assert len(data) == COUNT - 2
        assert "2 samples were omitted" in data.explain()
        assert [data[i][4]["id"] for i in range(len(data))] == [i for i in range(COUNT) if i not in (4, 7)]
    else:
        rows = [row for batch in data.loader(4, output="numpy") for row in zip(*batch, strict=True)]
        assert [row[4] is None for row in rows] == [i == 4 for i in range(COUNT)]
        assert [row[5] is None for row in rows] == [i == 7 for i in range(COUNT)]


BAD = {
    "json": b"{'id': 1}",
    "txt": b"caption \xff",
    "boxes.npy": npy(np.zeros((2, 4), np.float32))[:-3],
    "mask.png": palette_png(np.zeros((47, 60))),
    "cls": b"cat",
}


@pytest.mark.parametrize("field", BAD)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_bad_field_is_that_samples_error(tmp_path: Path, field: str, on_error: str) -> None:
    samples = [sample(number) for number in range(COUNT)]
    samples[5][field] = BAD[field]
    data = feedline.open(make_tar(tmp_path / "x.tar", samples), fields=EXTENSIONS).center_crop(40)
    data = data.collate("list", fields="boxes.npy")
    if on_error == "skip":
        loader = data.loader(3, on_error="skip", output="numpy")
        rows = [row for batch in loader for row in zip(*batch, strict=True)]
        assert sorted(row[4]["id"] for row in rows) == [i for i in range(COUNT) if i != 5]
        assert len(loader.errors) == 1
        return
    with pytest.raises(feedline.DataError, match=field) as caught:
        list(data.loader(3, output="numpy"))
    assert caught.value.key == "0005"
    assert caught.value.stage in ("decode", "format", "transform")


def test_arrays_of_another_shape_report_what_helps(tmp_path: Path) -> None:
    data = feedline.open(make_tar(tmp_path / "x.tar", [sample(1), sample(2)]), fields=["boxes.npy"])
    assert data.schema["boxes.npy"] == ((1, 4), "float32")
    assert data[1][0].shape == (2, 4)  # a single sample needs no common shape
    with pytest.raises(
        feedline.DataError, match=r"float32\(2, 4\), but all must be float32\(1, 4\); collate\(\"pad\"\)"
    ):
        list(data.loader(2, output="numpy"))


JSON_TEXTS = [
    "1",
    "-0",
    "01",
    "1.",
    ".5",
    "1e5",
    "1e",
    "1E+400",
    "-",
    "+1",
    "NaN",
    "nan",
    "Infinity",
    "-Infinity",
    "--1",
    "[]",
    "[1,]",
    "[1 2]",
    "[[[]]]",
    "{}",
    '{"a":1}',
    '{"a":1,}',
    "{'a':1}",
    '{"a"}',
    "{1:2}",
    '{"a":1,"a":2}',
    '"\\u00e9"',
    '"\\ud800"',
    '"\\x"',
    '"\\u12"',
    '"a\nb"',
    '"\t"',
    '"\x7f"',
    "tru",
    "true",
    "null ",
    " \t\r\n1",
    "\x0b1",
    "1 1",
    "]",
    "",
    " ",
    '"a',
    "[" * 400 + "]" * 400,
    "\ufeff1",
    '"é€😀"',
    "1_000",
    "0x10",
    "1.5.5",
    "[NaN, -Infinity]",
    '{"a": [1, {"b": null}], "c": "d"}',
    "9" * 4300,
    "-" + "9" * 4300,
]


@pytest.mark.parametrize("text", JSON_TEXTS, ids=range(len(JSON_TEXTS)))
def test_json_is_what_python_loads(tmp_path: Path, text: str) -> None:
    try:
        expected: Any = json.loads(text.encode() or b" ")  # text in bytes, which may begin with a byte-order mark
        fine = True
    except ValueError:
        fine = False
    path = make_tar(tmp_path / "x.tar", [{"json": text.encode() or b" "}])
    data = feedline.open(path, fields=["json"])
    if fine:
        assert repr(data[0][0]) == repr(expected)
    else:
        with pytest.raises(feedline.DataError, match="invalid JSON"):
            data[0]


def test_bytes_and_kinds_that_are_reported(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "x.tar", [{"bin": b"\x00\xff", "cls": b"7", "tag": b"word", "n": b" 12 "}])
    data = feedline.open(path, fields=("bin", "cls:text", "tag:text", "n:value"))
    assert tuple(data[0]) == (b"\x00\xff", "7", "word", 12)
    with pytest.raises(feedline.ConfigError, match="unknown kind"):
        feedline.open(path, fields=["bin:blob"])


def test_images_of_any_size_are_a_list(tmp_path: Path) -> None:
    samples = [sample(number, 40 + number, 30 + 2 * number) for number in range(5)]
    data = feedline.open(make_tar(tmp_path / "x.tar", samples), fields=("left.jpg", "mask.png")).collate("list")
    assert data.schema["left.jpg"] == ((3, -1, -1), "uint8")
    rows = [row for batch in data.loader(2, output="numpy") for row in zip(*batch, strict=True)]
    for (image, mask), files in zip(rows, samples, strict=True):
        assert np.array_equal(image, image_of(files["left.jpg"]).transpose(2, 0, 1))
        assert np.array_equal(mask, mask_of(files))


def test_sixteen_bit_masks_are_uint16(tmp_path: Path) -> None:
    import io

    from PIL import Image

    labels = np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000
    stream = io.BytesIO()
    Image.fromarray(labels).save(stream, "PNG")
    data = feedline.open(make_tar(tmp_path / "x.tar", [{"mask.png": stream.getvalue()}]), fields=["mask.png"])
    assert np.array_equal(data.center_crop((3, 4))[0][0], labels)
    assert data.center_crop((3, 4)).schema["mask.png"].dtype == "uint16"


def test_a_state_resumes_with_lists(source: Any) -> None:
    data = opened(source).center_crop(8).collate("list", fields=name(source, 3))

    def loader() -> feedline.Loader:
        return data.loader(2, shuffle=True, seed=9, output="numpy")

    whole = [[row["id"] for row in batch[4]] for batch in loader()]
    first = loader()
    iterator = iter(first)
    taken = [[row["id"] for row in next(iterator)[4]] for _ in range(2)]
    second = loader()
    second.load_state_dict(first.state_dict())
    assert taken + [[row["id"] for row in batch[4]] for batch in second] == whole
