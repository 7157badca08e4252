# SPDX-License-Identifier: Apache-2.0
"""A cache of samples with any fields only changes the speed, and packed pixels include all fields."""

from __future__ import annotations

import io
import json
import shutil
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_fields import EXTENSIONS, PATTERNS, image_of, make_folder, make_tar, mask_of, nearest, palette_png, sample
from PIL import Image

import feedline

COUNT = 9
NAMES = {"tar": EXTENSIONS, "folder": ("left", "right", "masks", "boxes", "about", "captions", "label")}


def samples() -> list[dict[str, bytes]]:
    return [sample(number, 60 + number, 48 + 2 * number) for number in range(COUNT)]


@pytest.fixture(params=["tar", "folder"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[feedline.Dataset, tuple[str, ...], Path]:
    """A dataset, its fields, and its location."""
    if request.param == "tar":
        path = make_tar(tmp_path / "x.tar", samples())
        return feedline.open(path, fields=EXTENSIONS), EXTENSIONS, path
    path = make_folder(tmp_path / "x", samples())
    return feedline.open(path, fields=PATTERNS), NAMES["folder"], path


@pytest.fixture(params=["memory", "file"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory" if request.param == "memory" else str(tmp_path / "kept.pixels")


def training(data: feedline.Dataset, names: tuple[str, ...]) -> feedline.Dataset:
    drawn = data.random_resized_crop(24).random_horizontal_flip()
    return drawn.color_jitter(0.4, fields=names[0]).collate("list", fields=names[3])


def rows(loader: Any) -> list[Any]:
    """Returns copies of all rows of an epoch, in a form that can be compared."""
    return [
        tuple(value.tolist() if isinstance(value, np.ndarray) else value for value in row)
        for batch in loader
        for row in zip(*batch, strict=True)
    ]


def epochs(data: feedline.Dataset, count: int = 2, **options: Any) -> list[Any]:
    with data.loader(4, shuffle=True, seed=5, output="numpy", **options) as loader:
        return [row for _ in range(count) for row in rows(loader)]


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    "before",
    [
        lambda data: data,
        lambda data: data.resize(40),
        lambda data: data.resize((30, 44)).pad(3, padding_mode="reflect").center_crop(34),
        lambda data: data.grayscale(3),
    ],
    ids=["as stored", "resized", "padded and cut", "grey"],
)
def test_epochs_are_those_without_a_cache(opened: Any, where: str, before: Callable[[Any], Any]) -> None:
    data, names, path = opened
    expected = epochs(training(before(data), names), 3)
    cached = training(before(data).cache(where), names)
    with cached.loader(4, shuffle=True, seed=5, output="numpy") as loader:
        assert loader.stats()["cache"]["present"] == 0
        found = rows(loader)
        assert loader.stats()["cache"]["present"] == COUNT
        remove(path)  # from here on, nothing is read from there
        found += rows(loader) + rows(loader)
    assert found == expected


def test_every_field_is_kept_and_nothing_decoded_twice(opened: Any) -> None:
    data, names, _ = opened
    cached = training(data.resize(40).cache(), names)
    said = cached.explain()
    assert "decode to RGB" in said and f"0 of {COUNT} samples cached" in said
    with cached.loader(4, output="numpy") as loader:
        for _ in range(3):
            rows(loader)
        items = loader.stats()["stages"]["decode"]["items"]
    # two images and a mask are decoded once, or twice if the next epoch had already begun with them; JSON, text and the
    # array in each of three epochs. Without a cache, all six in each epoch.
    assert COUNT * (3 + 3 * 3) <= items < COUNT * 6 * 3


def test_masks_of_16_bits_are_kept(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    files = []
    for number in range(4):
        labels = random.integers(0, 60_000, (40, 50)).astype(np.uint16)
        stream = io.BytesIO()
        Image.fromarray(labels).save(stream, "PNG")
        files.append({**sample(number, 50, 40), "mask.png": stream.getvalue()})
    data = feedline.open(make_tar(tmp_path / "x.tar", files), fields=("mask.png", "left.jpg"))
    cached = data.resize((20, 30)).cache().center_crop(16)
    with cached.loader(2, output="numpy") as loader:
        for _ in range(2):
            (masks, _), (others, _) = [(batch[0].copy(), batch[1]) for batch in loader]
            for mask, one in zip([*masks, *others], files, strict=True):
                assert mask.dtype == np.uint16
                np.testing.assert_array_equal(mask, nearest(mask_of(one), 20, 30)[2:18, 7:23])


def test_what_some_samples_lack_is_kept_so(tmp_path: Path, where: str) -> None:
    files = samples()
    for number in (0, 3, 7):
        del files[number]["txt"], files[number]["right.jpg"]
    del files[2]["mask.png"]
    path = make_tar(tmp_path / "x.tar", files)
    data = feedline.open(path, fields=("left.jpg", "right.jpg", "mask.png", "txt"), missing="none")

    def chain(cached: feedline.Dataset) -> feedline.Dataset:
        return cached.center_crop(20).collate("list", fields=["right.jpg", "mask.png"])

    expected = epochs(chain(data.resize(30)))
    assert sum(row[3] is None for row in expected) == 6
    assert epochs(chain(data.resize(30).cache(where)), 1) == expected[:COUNT]
    if where != "memory":
        assert epochs(chain(feedline.open(where)))[:COUNT] == expected[:COUNT]
    assert epochs(chain(data.resize(30).cache(where))) == expected


def test_states_and_ranks_are_those_without_a_cache(opened: Any) -> None:
    data, names, _ = opened
    plain, cached = training(data, names), training(data.cache(), names)
    for rank in range(2):
        options = {"rank": rank, "world_size": 2, "uneven": "exact"}
        assert epochs(cached, 1, **options) == epochs(plain, 1, **options)
    with plain.loader(2, shuffle=True, output="numpy") as loader:
        whole = rows(loader)
        iterator = iter(loader)
        next(iterator)
        next(iterator)
        state = loader.state_dict()
    with cached.loader(2, shuffle=True, output="numpy") as loader:
        loader.load_state_dict(state)
        rest = rows(loader)
    assert len(rest) == COUNT - 4 and len(whole) == COUNT


# ---- packed ----


def test_packed_pixels_have_all_fields(opened: Any, tmp_path: Path) -> None:
    data, names, path = opened
    keys = [data.key(i) for i in range(COUNT)]
    packed = feedline.pack_pixels(data.resize(40), tmp_path / "all.pixels")
    remove(path)
    assert [packed.key(i) for i in range(COUNT)] == keys
    plain = packed.center_crop(16).collate("list", fields=names[3])
    assert list(plain.schema) == list(names)
    for row, files in zip(rows(plain.loader(4, output="numpy")), samples(), strict=True):
        assert row[4] == json.loads(files["json"])
        assert row[5] == files["txt"].decode()
        assert row[6] == int(files["cls"])
        np.testing.assert_array_equal(np.array(row[3]).reshape(-1, 4), np.load(io.BytesIO(files["boxes.npy"])))
        labels = mask_of(files)
        height, width = labels.shape
        small = (40, int(40 * width / height)) if height < width else (int(40 * height / width), 40)
        top, left = round((small[0] - 16) / 2), round((small[1] - 16) / 2)
        np.testing.assert_array_equal(row[2], nearest(labels, *small)[top : top + 16, left : left + 16])
    assert feedline.inspect(tmp_path / "all.pixels").fields == list(names)


def test_packed_as_stored_gives_the_same_epochs(opened: Any, tmp_path: Path) -> None:
    data, names, _ = opened
    packed = feedline.pack_pixels(data, tmp_path / "all.pixels")
    assert epochs(training(packed, names)) == epochs(training(data, names))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("json", b"{", "invalid JSON"),
        ("txt", b"\xff", "not UTF-8"),
        ("boxes.npy", b"none", "not a .npy file"),
        ("mask.png", palette_png(np.zeros((4, 4))), "4 x 4 pixels"),
        ("cls", b"one", "not an integer"),
    ],
)
def test_a_damaged_field_stops_packing_every_time(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    files = samples()
    files[4][name] = content
    data = feedline.open(make_tar(tmp_path / "x.tar", files), fields=EXTENSIONS)
    for _ in range(2):  # the cached data does not hide the change
        with pytest.raises(feedline.DataError, match=says) as caught:
            feedline.pack_pixels(data, tmp_path / "all.pixels")
        assert caught.value.key == "0004"
        assert f"field '{name}'" in str(caught.value)
    assert not (tmp_path / "all.pixels").exists()


def test_images_and_numbers_are_a_file_of_the_first_version(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "x.tar", samples())
    for fields, version in ((("left.jpg", "cls"), 1), (("left.jpg", "txt"), 2)):
        pixels = tmp_path / f"{version}.pixels"
        feedline.pack_pixels(feedline.open(path, fields=fields), pixels)
        assert struct.unpack_from("<I", pixels.read_bytes(), 8) == (version,)


def test_another_versions_file_is_refused_and_stays(tmp_path: Path) -> None:
    data = feedline.open(make_tar(tmp_path / "x.tar", samples()), fields=("left.jpg", "json"))
    pixels = tmp_path / "kept.pixels"
    feedline.pack_pixels(data, pixels)
    content = bytearray(pixels.read_bytes())
    struct.pack_into("<I", content, 8, 7)
    pixels.write_bytes(content)
    for call in (lambda: feedline.open(pixels), lambda: data.cache(pixels).center_crop(8).loader(2, output="numpy")):
        with pytest.raises(feedline.DataError, match=r"version 7; this Feedline reads versions 1 to 2: create it"):
            call()
    assert pixels.read_bytes() == content


def test_other_fields_in_a_file_are_reported(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "x.tar", samples())
    pixels = tmp_path / "kept.pixels"
    feedline.pack_pixels(feedline.open(path, fields=("left.jpg", "json")), pixels)
    other = feedline.open(path, fields=("left.jpg", "json:text")).cache(pixels).center_crop(8)
    with pytest.raises(
        feedline.ConfigError, match=r"left.jpg \(image\), json \(json\); these would be .*json \(text\)"
    ):
        other.loader(2, output="numpy")


def test_a_full_disk_ends_the_run(tmp_path: Path) -> None:
    program = """
        import resource, signal, sys, feedline
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a limit of the process stands for the end of the disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (230_000, 230_000))
        data = feedline.open(sys.argv[1], fields=("left.jpg", "mask.png", "txt")).cache(sys.argv[2]).center_crop(8)
        try:
            with data.loader(4, output="numpy", on_error="skip") as loader:
                list(loader)
        except feedline.StorageError as error:
            print(error)
    """
    path = make_tar(tmp_path / "x.tar", samples() * 3)
    command = [sys.executable, "-c", textwrap.dedent(program), path, tmp_path / "kept.pixels"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "the cache cannot store more pixels" in said and "kept.pixels.filling" in said


def test_pixels_are_those_of_the_stored_images(tmp_path: Path) -> None:
    files = [sample(number) for number in range(3)]
    data = feedline.open(make_tar(tmp_path / "x.tar", files), fields=("left.jpg", "right.jpg", "mask.png"))
    packed = feedline.pack_pixels(data, tmp_path / "all.pixels").collate("list")
    for row, one in zip(packed, files, strict=True):
        for image, name in zip(row, ("left.jpg", "right.jpg"), strict=False):
            np.testing.assert_array_equal(image.transpose(1, 2, 0), image_of(one[name]))
        np.testing.assert_array_equal(row[2], mask_of(one))
