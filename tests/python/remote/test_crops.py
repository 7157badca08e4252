# SPDX-License-Identifier: Apache-2.0
"""Crops of large remote JPEGs: only a range of the file is fetched, and the pixels are those of the whole file."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import made_data
import numpy as np
import pytest
from PIL import Image
from range_server import RangeServer, etag_of, serving

import feedline

WIDTH, HEIGHT, PHOTOS = 2000, 1500, 4


def photo(seed: int, width: int = WIDTH, height: int = HEIGHT, quality: int = 85) -> bytes:
    return made_data.large_photo(seed, width, height, 9, quality)


@pytest.fixture(scope="module")
def photos() -> list[bytes]:
    return [photo(seed) for seed in range(PHOTOS)]


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path, photos: list[bytes]) -> Path:
    write(tmp_path / "served" / "data", photos)
    return tmp_path / "served"


@pytest.fixture
def server(root: Path) -> Iterator[RangeServer]:
    with serving(root) as server:
        yield server


def write(data: Path, photos: list[bytes]) -> None:
    (data / "only").mkdir(parents=True, exist_ok=True)
    for i, encoded in enumerate(photos):
        (data / "only" / f"{i}.jpg").write_bytes(encoded)
    lines = [f"{len(encoded)} only/{i}.jpg" for i, encoded in enumerate(photos)]
    (data / "feedline-listing.txt").write_text(f"feedline-listing 1 {len(lines)}\n" + "\n".join(lines) + "\n")


def crops(loader: feedline.Loader) -> list[np.ndarray]:
    return [np.asarray(batch[0]).copy() for batch in loader]


def loader_of(dataset: feedline.Dataset, shuffle: bool = True) -> feedline.Loader:
    return dataset.loader(2, shuffle=shuffle, seed=3, output="numpy", num_workers=2)


def first_epoch(dataset: feedline.Dataset) -> list[np.ndarray]:
    """By a new loader, which has nothing fetched ahead."""
    with loader_of(dataset, shuffle=False) as loader:
        return crops(loader)


def assert_equal(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def stats_of(dataset: feedline.Dataset) -> dict[str, int]:
    with loader_of(dataset) as loader:
        return loader.stats()["checkpoints"]  # type: ignore[return-value]


def decoded_whole(root: Path) -> list[np.ndarray]:
    return first_epoch(feedline.open(str(root / "data"), checkpoints=False).center_crop(224))


def test_random_crops(server: RangeServer, root: Path) -> None:
    remote = feedline.open(server.url("data/")).random_crop(224)
    local = feedline.open(str(root / "data"), checkpoints=False).random_crop(224)
    with loader_of(remote) as mine, loader_of(local) as other:
        for _ in range(10):
            assert_equal(crops(mine), crops(other))
        stats = stats_of(remote)
        assert stats["ranges"] >= 2 * PHOTOS
        assert stats["range_bytes"] < 0.35 * stats["range_image_bytes"]
        assert stats["refused_ranges"] == stats["changed"] == stats["damaged"] == 0
        assert f"{stats['ranges']} crops fetched" in mine.explain()


def test_a_crop_of_a_large_photo_fetches_a_tenth(tmp_path: Path) -> None:
    encoded = photo(0, 6144, 4096, 75)
    write(tmp_path / "large" / "data", [encoded])
    with serving(tmp_path / "large") as server:
        dataset = feedline.open(server.url("data/")).center_crop(224)
        dataset._engine.make_checkpoints(1)
        server.requests.clear()
        (found,) = first_epoch(dataset)
        requests = list(server.requests)
    for path, span in requests:
        assert path == "/data/only/0.jpg"
        first, last = map(int, span.removeprefix("bytes=").split("-"))
        assert last + 1 - first < len(encoded) / 10
    left, top = (6144 - 224) // 2, (4096 - 224) // 2
    expected = np.asarray(Image.open(io.BytesIO(encoded)).crop((left, top, left + 224, top + 224)))
    np.testing.assert_array_equal(found[0], expected.transpose(2, 0, 1))


def test_the_next_run_starts_with_ranges(server: RangeServer, root: Path) -> None:
    url = server.url("data/")
    command = [sys.executable, "-m", "feedline", "index", "--checkpoints", url]
    subprocess.run(command, check=True, capture_output=True)
    server.requests.clear()
    dataset = feedline.open(url).center_crop(224)
    assert_equal(first_epoch(dataset), decoded_whole(root))
    assert stats_of(dataset)["ranges"] >= PHOTOS
    assert all(span for path, span in server.requests if path.endswith(".jpg"))


def test_shards(server: RangeServer, root: Path, photos: list[bytes]) -> None:
    with tarfile.open(root / "photos.tar", "w") as tar:
        for i, encoded in enumerate(photos):
            for name, content in ((f"{i}.jpg", encoded), (f"{i}.cls", str(i).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    remote = feedline.open(server.url("photos.tar")).random_crop(224)
    local = feedline.open(str(root / "photos.tar"), checkpoints=False).random_crop(224)
    with loader_of(remote) as mine, loader_of(local) as other:
        for _ in range(8):
            for one, expected in zip(mine, other, strict=True):
                np.testing.assert_array_equal(one[0], expected[0])
                np.testing.assert_array_equal(one[1], expected[1])
    stats = stats_of(remote)
    assert stats["ranges"] >= PHOTOS
    assert stats["refused_ranges"] == 0


def test_orders_that_the_caller_gives(server: RangeServer, root: Path) -> None:
    order = [0, 1, 2, 3, 1, 1, 3, 0]
    remote = feedline.open(server.url("data/")).random_crop(224)
    local = feedline.open(str(root / "data"), checkpoints=False).random_crop(224)
    loaders = [dataset.loader(2, sampler=order, output="numpy", num_workers=2, seed=1) for dataset in (remote, local)]
    with loaders[0] as mine, loaders[1] as other:
        for _ in range(6):
            assert_equal(crops(mine), crops(other))
    stats = stats_of(remote)
    assert stats["ranges"] > PHOTOS
    assert stats["refused_ranges"] == 0, "the ranges of these draws"


def is_decodable(encoded: bytes) -> bool:
    try:
        feedline.decode_image(encoded)
    except feedline.DataError:
        return False
    return True


def with_a_changed_byte(encoded: bytes, share: float) -> bytes:
    """A JPEG of the same size that can be decoded, but has other pixels from about this share of the file on."""
    for at in itertools.count(int(len(encoded) * share)):
        changed = bytearray(encoded)
        changed[at] ^= 1
        if is_decodable(bytes(changed)):
            return bytes(changed)
    raise AssertionError


VALIDATORS: dict[str, Callable[[bytes], dict[str, str]]] = {
    "etag": etag_of,
    "weak etag that stays": lambda data: {"ETag": 'W/"1"'},
    "time that stays": lambda data: {"Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"},
    "none": lambda data: {},
}
ALWAYS_EQUAL = {"strong etag that stays": lambda data: {"ETag": '"1"'}}


@pytest.fixture
def known(request: pytest.FixtureRequest, server: RangeServer) -> feedline.Dataset:
    """Crops of photos whose checkpoints are known, from a server with some of VALIDATORS."""
    server.validators = (VALIDATORS | ALWAYS_EQUAL)[request.param]
    dataset = feedline.open(server.url("data/")).center_crop(224)
    dataset._engine.make_checkpoints(1)
    first_epoch(dataset)
    stats = stats_of(dataset)
    assert stats["ranges"] >= PHOTOS
    assert stats["refused_ranges"] == 0
    return dataset


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9], ids=["before the crop", "in the crop", "after the crop"])
@pytest.mark.parametrize("known", VALIDATORS, indirect=True)
def test_changed_bytes(known: feedline.Dataset, share: float, root: Path, photos: list[bytes]) -> None:
    write(root / "data", [with_a_changed_byte(encoded, share) for encoded in photos])
    expected = decoded_whole(root)
    before = stats_of(known)
    for _ in range(4):
        assert_equal(first_epoch(known), expected)
    after = stats_of(known)
    assert after["ranges"] >= before["ranges"] + PHOTOS, "the outlines were made again"


@pytest.mark.parametrize("known", VALIDATORS, indirect=True)
def test_another_photo_of_the_same_size(known: feedline.Dataset, root: Path, photos: list[bytes]) -> None:
    others = [photo(100 + i, quality=70) for i in range(PHOTOS)]
    write(root / "data", [other.ljust(len(old), b"\0") for other, old in zip(others, photos, strict=True)])
    expected = decoded_whole(root)
    for _ in range(3):
        assert_equal(first_epoch(known), expected)
    assert stats_of(known)["refused_ranges"] >= PHOTOS


# HTTP forbids such a server (RFC 9110, section 8.8.1).
@pytest.mark.parametrize("known", ["strong etag that stays"], indirect=True)
def test_changes_in_the_crop_under_the_same_strong_etag(
    known: feedline.Dataset, root: Path, photos: list[bytes]
) -> None:
    write(root / "data", [with_a_changed_byte(encoded, 0.5) for encoded in photos])
    assert_equal(first_epoch(known), decoded_whole(root))
    assert stats_of(known)["refused_ranges"] >= PHOTOS


@pytest.mark.parametrize("known", ["etag"], indirect=True)
def test_a_range_that_was_damaged_on_its_way(known: feedline.Dataset, server: RangeServer, root: Path) -> None:
    def damaged(number: int, body: bytes) -> bytes:
        is_range = server.requests[number][1] != ""
        return body[:5000] + bytes([body[5000] ^ 1]) + body[5001:] if is_range else body

    server.damage = damaged
    assert_equal(first_epoch(known), decoded_whole(root))
    assert stats_of(known)["refused_ranges"] >= PHOTOS


@pytest.mark.parametrize("options", [{"checkpoints": False}, {"verify": "headers"}])
def test_files_are_read_whole(options: dict[str, object], server: RangeServer) -> None:
    dataset = feedline.open(server.url("data/"), **options).center_crop(224)
    for _ in range(3):
        first_epoch(dataset)
    assert not any(span for path, span in server.requests if path.endswith(".jpg"))
