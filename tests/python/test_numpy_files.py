# SPDX-License-Identifier: Apache-2.0
"""`.npy` and `.npz` files, as written by NumPy: rows of arrays of every dtype and order; damage is an error."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from range_server import serving

import feedline
from feedline import verifying

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32"]
DTYPES += ["float64", ">i2", ">u8", ">f4", ">f8"]


def rows(dataset: feedline.Dataset, batch_size: int = 4, **options: Any) -> list[Any]:
    with dataset.loader(batch_size, output="numpy", **options) as loader:
        batches = [[np.array(field) for field in batch] for batch in loader]
    return [np.concatenate(field) for field in zip(*batches, strict=True)]


@pytest.fixture
def draw() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_rows_of_every_dtype_order_and_version(
    tmp_path: Path, draw: np.random.Generator, dtype: str, version: tuple[int, int]
) -> None:
    for shape in ((9,), (9, 3), (9, 2, 3, 2)):
        for order in "CF":
            array = np.asarray((draw.normal(size=shape) * 100).astype(dtype), order=order)
            path = tmp_path / f"{len(shape)}{order}.npy"
            with path.open("wb") as file:
                np.lib.format.write_array(file, array, version)
            dataset = feedline.open(path)
            assert (dataset.format, len(dataset)) == ("numpy", 9)
            (found,) = rows(dataset)
            native = array.astype(array.dtype.newbyteorder("="))
            assert found.dtype == native.dtype
            np.testing.assert_array_equal(found, native)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_an_archive_are_fields(tmp_path: Path, draw: np.random.Generator, save: Any) -> None:
    x, y = draw.normal(size=(50, 7)).astype(np.float32), draw.integers(0, 9, 50)
    save(tmp_path / "set.npz", x=x, y=y, big=np.asfortranarray(x.astype(">f8")))
    dataset = feedline.open(tmp_path / "set.npz")
    assert list(dataset.schema) == ["x", "y", "big"]
    for found, wanted in zip(rows(dataset, 8), (x, y, x.astype("f8")), strict=True):
        np.testing.assert_array_equal(found, wanted)
    chosen = feedline.open(tmp_path / "set.npz", fields=("label=y", "x"))
    assert list(chosen.schema) == ["label", "x"]
    shuffled = rows(chosen, 8, shuffle=True, seed=2)
    expected = rows(feedline.arrays(label=y, x=x), 8, shuffle=True, seed=2)
    for found, wanted in zip(shuffled, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_images_masks_and_boxes_move_as_those_of_arrays(tmp_path: Path, draw: np.random.Generator) -> None:
    images = draw.integers(0, 256, (12, 20, 24, 3), np.uint8)
    masks, boxes = draw.integers(0, 5, (12, 20, 24), np.uint8), np.tile(np.float32([1, 2, 9, 11]), (12, 2, 1))
    np.savez(tmp_path / "set.npz", images=images, masks=masks, boxes=boxes, y=np.arange(12))
    specs = ("image=images:image", "mask=masks:mask", "boxes:boxes", "y")
    kinds = ("image:image", "mask:mask", "boxes:boxes")
    of_file = feedline.open(tmp_path / "set.npz", fields=specs)
    of_arrays = feedline.arrays(image=images, mask=masks, boxes=boxes, y=np.arange(12), fields=kinds)
    for one, other in zip(
        *(
            data.random_resized_crop(8).random_horizontal_flip().loader(4, seed=1, output="numpy")
            for data in (of_file, of_arrays)
        ),
        strict=True,
    ):
        np.testing.assert_array_equal(one.image, other.image)
        np.testing.assert_array_equal(one.mask, other.mask)
        np.testing.assert_array_equal(one.y, other.y)
        for box, wanted in zip(one.boxes, other.boxes, strict=True):
            np.testing.assert_array_equal(box, wanted)


def test_several_files_are_one_dataset(tmp_path: Path, draw: np.random.Generator) -> None:
    whole = draw.integers(0, 99, (30, 2))
    for i, part in enumerate(np.split(whole, [7, 11])):
        np.save(tmp_path / f"part-{i}.npy", part)
    dataset = feedline.open(tmp_path / "part-{0..2}.npy")
    np.testing.assert_array_equal(rows(dataset)[0], whole)
    assert (
        feedline.open([tmp_path / f"part-{i}.npy" for i in range(3)])._engine.fingerprint == dataset._engine.fingerprint
    )
    with dataset.loader(4, shuffle=True, seed=1, output="numpy") as loader:
        batches = iter(loader)
        next(batches)
        state = json.dumps(loader.state_dict())
        rest = [batch[0].tobytes() for batch in batches]
    with dataset.loader(4, shuffle=True, seed=1, output="numpy") as loader:
        loader.load_state_dict(json.loads(state))
        assert [batch[0].tobytes() for batch in loader] == rest


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_that_fields_does_not_name_are_listed(tmp_path: Path, save: Any) -> None:
    left = {
        "big": np.zeros((4, 3), ">f4"),
        "odd": np.zeros(3, np.int16),
        "one": np.float64(1),
        "what": np.array([{}, 1, 2, 3], object),
    }
    path = tmp_path / "set.npz"
    save(path, x=np.arange(8).reshape(4, 2), y=np.arange(4), **left)
    dataset = feedline.open(path, fields=("x", "label=y"))
    assert [(one.name, one.holds, one.spec) for one in dataset.unopened] == [
        ("big", "float32(4, 3)", "big"),
        ("odd", "int16(3,)", ""),
        ("one", "float64()", ""),
        ("what", "", ""),
    ]
    assert "4 samples" in dataset.unopened[1].reason
    assert "Python objects" in dataset.unopened[3].reason
    notes = [finding.text for finding in feedline.inspect(path, fields=("x", "label=y")).findings]
    for name in left:
        assert name in repr(dataset)
        assert name in dataset.explain()
        assert any(f"'{name}'" in note for note in notes)
    with pytest.raises(AttributeError, match=r"'big' \(float32\(4, 3\)\) exists but was not opened: not in fields="):
        dataset[0].big  # noqa: B018
    with dataset.loader(2, output="numpy") as loader, pytest.raises(AttributeError, match="'odd'"):
        next(iter(loader)).odd  # noqa: B018
    opened = feedline.open(path, fields=("x", dataset.unopened[0].spec))
    assert [one.name for one in opened.unopened] == ["y", "odd", "one", "what"]
    assert [one.name for one in opened.subset([0, 1]).unopened] == ["y", "odd", "one", "what"]
    np.savez(path, x=np.arange(8))
    assert feedline.open(path, fields="x").unopened == feedline.open(path).unopened == ()


def test_damage_in_an_array_that_is_not_opened_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    np.savez_compressed(path, x=np.arange(4), other=np.arange(4))
    content = bytearray(path.read_bytes())
    at = content.index(b"other.npy") + len(b"other.npy")
    content[at + 20 : at + 60] = b"\xff" * 40
    path.write_bytes(content)
    dataset = feedline.open(path, fields="x")
    assert dataset[3].x == 3
    assert [(one.name, one.spec) for one in dataset.unopened] == [("other", "")]


def test_from_a_server_the_rows_are_the_same(tmp_path: Path, draw: np.random.Generator) -> None:
    x = draw.normal(size=(40, 3))
    np.save(tmp_path / "x.npy", x)
    np.savez_compressed(tmp_path / "x.npz", x=x)
    with serving(tmp_path) as server:
        for name in ("x.npy", "x.npz"):
            np.testing.assert_array_equal(rows(feedline.open(server.url(name)))[0], x)


def test_what_no_batch_can_hold_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{}, 1], object), allow_pickle=True)
    with pytest.raises(feedline.DataError, match="Python objects"):
        feedline.open(tmp_path / "o.npy")
    np.save(tmp_path / "c.npy", np.zeros(3, np.complex64))
    with pytest.raises(feedline.DataError, match="dtype <c8"):
        feedline.open(tmp_path / "c.npy")
    np.save(tmp_path / "s.npy", np.zeros(3, [("a", "f4")]))
    with pytest.raises(feedline.DataError, match="structured"):
        feedline.open(tmp_path / "s.npy")
    np.save(tmp_path / "n.npy", np.float32(1))
    with pytest.raises(feedline.ConfigError, match="a single number"):
        feedline.open(tmp_path / "n.npy")


def test_damage_is_an_error_or_the_same_rows(tmp_path: Path) -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(4)
    content = io.BytesIO()
    np.savez_compressed(content, x=x, y=y)
    good, path = content.getvalue(), tmp_path / "x.npz"
    for position in range(0, len(good), 3):
        damaged = bytearray(good)
        damaged[position] ^= 0x55
        path.write_bytes(damaged)
        try:
            found = rows(feedline.open(path))
        except feedline.Error:
            continue
        wanted = [array for array in (x, y) if len(found) > 1 or array.shape == found[0].shape]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    np.save(path.with_suffix(".npy"), x)
    path.with_suffix(".npy").write_bytes(path.with_suffix(".npy").read_bytes()[:-1])
    with pytest.raises(feedline.DataError, match="47 of 48 bytes") as caught:
        feedline.open(path.with_suffix(".npy"))
    assert caught.value.shard == str(path.with_suffix(".npy"))
    (finding,) = feedline.inspect(path.with_suffix(".npy")).findings
    assert (finding.code, finding.severity) == ("damaged_array", "error")


def test_an_archive_of_other_things_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("words.txt", "no array")
    with pytest.raises(feedline.DataError, match=r"not a \.npy file"):
        feedline.open(tmp_path / "x.npz")


def test_is_inspected_and_verified(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((6, 2), np.int16), y=np.arange(6))
    found = feedline.inspect(tmp_path / "x.npz")
    assert (found.format, found.samples, list(found.fields), found.bytes) == ("numpy", 6, ["x", "y"], 72)
    report = verifying.verify(tmp_path / "x.npz")
    assert (report.format, report.samples) == ("numpy", 6)
    assert not [finding for finding in report.findings if finding.severity == "error"]


def test_a_name_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", name=np.arange(3))
    path = tmp_path / "x.npz"
    path.write_bytes(path.read_bytes().replace(b"name.npy", b"na\xffe.npy"))
    with pytest.raises(feedline.DataError, match=r'name is not valid UTF-8: "na\\xffe"'):
        feedline.open(path)
