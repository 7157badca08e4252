# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of large JPEGs: crops equal those without, in every format, and whatever happens to the files between."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import made_data
import numpy as np
import pytest
from PIL import Image

import feedline

WIDTH, HEIGHT, PHOTOS = 1100, 800, 10


def photo(seed: int, quality: int = 93, **options: object) -> bytes:
    return made_data.large_photo(seed, WIDTH, HEIGHT, 12, quality, **options)


@pytest.fixture(scope="module")
def photos() -> list[bytes]:
    return [photo(seed) for seed in range(PHOTOS)]


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def folder_of(photos: list[bytes], root: Path) -> str:
    (root / "data" / "only").mkdir(parents=True)
    for i, encoded in enumerate(photos):
        (root / "data" / "only" / f"{i}.jpg").write_bytes(encoded)
    return str(root / "data")


def tar_of(photos: list[bytes], root: Path) -> str:
    with tarfile.open(root / "photos.tar", "w") as tar:
        for i, encoded in enumerate(photos):
            for name, content in ((f"{i}.jpg", encoded), (f"{i}.cls", str(i).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return str(root / "photos.tar")


def parquet_of(photos: list[bytes], root: Path) -> str:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    images = [{"bytes": encoded, "path": f"{i}.jpg"} for i, encoded in enumerate(photos)]
    table = pyarrow.table({"image": images, "label": list(range(len(photos)))})
    parquet.write_table(table, root / "photos.parquet", row_group_size=4)
    return str(root / "photos.parquet")


SOURCES = {"folder": folder_of, "tar": tar_of, "parquet": parquet_of}


def crops(loader: feedline.Loader) -> list[np.ndarray]:
    return [np.asarray(batch[0]).copy() for batch in loader]


def loader_of(source: str, seed: int = 0, **options: object) -> feedline.Loader:
    dataset = feedline.open(source, **options).random_crop(160)
    return dataset.loader(4, shuffle=True, seed=seed, output="numpy", num_workers=2)


@pytest.mark.parametrize("kind", SOURCES)
def test_crops_are_the_same_in_every_epoch(kind: str, photos: list[bytes], tmp_path: Path) -> None:
    source = SOURCES[kind](photos, tmp_path)
    with loader_of(source) as loader, loader_of(source, checkpoints=False) as without:
        for _ in range(3):
            for mine, expected in zip(crops(loader), crops(without), strict=True):
                np.testing.assert_array_equal(mine, expected)
        stats = loader.stats()["checkpoints"]
        assert stats["images"] == PHOTOS
        assert stats["used"] > PHOTOS
        assert stats["changed"] == stats["damaged"] == stats["dropped"] == 0
        assert f"checkpoints of {PHOTOS} JPEGs" in loader.explain()
        assert without.stats()["checkpoints"] is None
        assert "checkpoints" not in without.explain()


@pytest.mark.parametrize("kind", SOURCES)
def test_the_next_run_starts_with_those_that_the_command_made(
    kind: str, photos: list[bytes], tmp_path: Path, cache_home: Path
) -> None:
    source = SOURCES[kind](photos, tmp_path)
    command = [sys.executable, "-m", "feedline", "index", "--checkpoints", "--json", source]
    written = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert written["images"] == PHOTOS
    path = Path(written["path"])
    assert path.parent == (cache_home / "feedline" / "index" if kind == "folder" else tmp_path / ".feedline")
    assert written["bytes"] <= path.stat().st_size <= sum(map(len, photos)) / 80
    with loader_of(source) as loader, loader_of(source, checkpoints=False) as without:
        for mine, expected in zip(crops(loader), crops(without), strict=True):
            np.testing.assert_array_equal(mine, expected)
        stats = loader.stats()["checkpoints"]
        assert stats["used"] > PHOTOS / 2
        assert stats["made"] == 0
        assert stats["path"] == str(path)


def test_few_checkpoints_are_not_stored(photos: list[bytes], tmp_path: Path, cache_home: Path) -> None:
    with loader_of(tar_of(photos[:2], tmp_path)) as loader:
        crops(loader)
        assert loader.stats()["checkpoints"]["path"] == ""
    assert not list(tmp_path.rglob("*checkpoints*"))


def padded(encoded: bytes, size: int) -> bytes:
    """The same JPEG with comments before its first segment, so that the file has `size` bytes."""
    comments = b""
    while (missing := size - len(encoded) - len(comments)) > 0:
        length = min(missing - 2, 65000) if missing - 2 <= 65000 or missing - 65002 > 4 else 32000
        comments += b"\xff\xfe" + length.to_bytes(2, "big") + b" " * (length - 2)
    return encoded[:2] + comments + encoded[2:]


def replace(path: Path, content: bytes) -> None:
    """Replaces a file in place, with its size and times."""
    before = path.stat()
    assert len(content) == before.st_size
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def result_of(dataset: feedline.Dataset, index: int, epoch: int) -> object:
    try:
        return np.asarray(dataset.sample(index, epoch=epoch)[0]).tobytes()
    except feedline.DataError as error:
        return str(error)


def assert_same_as_without(source: str, epochs: int = 4) -> int:
    """Returns the number of crops that were decoded."""
    mine, expected = (feedline.open(source, checkpoints=given).random_crop(96) for given in (True, False))
    decoded = 0
    for index in range(len(mine)):
        for epoch in range(epochs):
            result = result_of(mine, index, epoch)
            assert result == result_of(expected, index, epoch)
            decoded += isinstance(result, bytes)
    return decoded


def test_files_replaced_with_the_same_size_and_time(photos: list[bytes], tmp_path: Path) -> None:
    source = folder_of(photos[:3], tmp_path)
    feedline.open(source)._engine.make_checkpoints(1)
    for i in range(3):
        replace(tmp_path / "data" / "only" / f"{i}.jpg", padded(photo(100 + i, quality=80), len(photos[i])))
    assert assert_same_as_without(source) == 12


def test_a_changed_byte_is_noticed(photos: list[bytes], tmp_path: Path) -> None:
    source = folder_of(photos[:1], tmp_path)
    path = tmp_path / "data" / "only" / "0.jpg"
    decoded = 0
    for seed in range(12):
        path.write_bytes(photos[0])
        feedline.open(source)._engine.make_checkpoints(1)
        changed = bytearray(photos[0])
        changed[len(changed) // 50 + seed * len(changed) // 40] ^= 1 << seed % 8
        replace(path, bytes(changed))
        decoded += assert_same_as_without(source)
    assert decoded > 0  # some changes leave a file that can be decoded, with other pixels


def test_truncated_files(photos: list[bytes], tmp_path: Path) -> None:
    source = folder_of(photos[:1], tmp_path)
    feedline.open(source)._engine.make_checkpoints(1)
    path = tmp_path / "data" / "only" / "0.jpg"
    for eighths in range(1, 8):
        path.write_bytes(photos[0][: len(photos[0]) * eighths // 8])
        assert assert_same_as_without(source) == 0
        path.write_bytes(photos[0][: len(photos[0]) * eighths // 8].ljust(len(photos[0]), b"\0"))
        assert_same_as_without(source)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:50], lambda data: data[:-9] + b"\xff" * 9, lambda data: b"", lambda data: data[::-1]]
)
def test_a_damaged_file_of_checkpoints(damage: object, photos: list[bytes], tmp_path: Path) -> None:
    source = folder_of(photos[:3], tmp_path)
    _, _, path = feedline.open(source)._engine.make_checkpoints(1)
    Path(path).write_bytes(damage(Path(path).read_bytes()))  # type: ignore[operator]
    assert assert_same_as_without(source) == 12
    feedline.open(source)._engine.make_checkpoints(1)
    assert feedline.open(source)._engine.make_checkpoints(1)[0] == 3


def test_checkpoints_of_another_version(photos: list[bytes], tmp_path: Path) -> None:
    source = folder_of(photos[:3], tmp_path)
    _, _, path = feedline.open(source)._engine.make_checkpoints(1)
    data = bytearray(Path(path).read_bytes())
    data[8] += 1
    Path(path).write_bytes(bytes(data))
    assert assert_same_as_without(source) == 12


def test_a_mixture_uses_those_of_its_datasets(photos: list[bytes], tmp_path: Path) -> None:
    first, second = (feedline.open(tar_of(photos[i : i + 5], root)) for i, root in enumerate_roots(tmp_path))
    mixed = feedline.mix([first, second]).random_crop(128)
    with mixed.loader(5, output="numpy", num_workers=1) as loader:
        for _ in range(2):
            crops(loader)
        assert loader.stats()["checkpoints"]["images"] == 10
        assert loader.stats()["checkpoints"]["used"] > 0


def enumerate_roots(root: Path) -> list[tuple[int, Path]]:
    roots = [(0, root / "first"), (5, root / "second")]
    for _, path in roots:
        path.mkdir()
    return roots


def test_datasets_without_large_jpegs_have_none(tmp_path: Path) -> None:
    (tmp_path / "data" / "a").mkdir(parents=True)
    Image.new("RGB", (64, 64)).save(tmp_path / "data" / "a" / "0.jpg")
    Image.new("RGB", (900, 900)).save(tmp_path / "data" / "a" / "1.png")
    with loader_of(str(tmp_path / "data")) as _:
        pass
    dataset = feedline.open(str(tmp_path / "data")).random_crop(32)
    with dataset.loader(2, output="numpy", num_workers=1) as loader:
        crops(loader)
        assert loader.stats()["checkpoints"] is None


def test_the_command_states_what_it_needs(tmp_path: Path) -> None:
    np.save(tmp_path / "numbers.npy", np.zeros((4, 3)))
    command = [sys.executable, "-m", "feedline", "index", "--checkpoints", str(tmp_path / "numbers.npy")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "no encoded images" in result.stderr


def test_checkpoints_is_a_flag(tmp_path: Path) -> None:
    with pytest.raises(feedline.ConfigError, match="checkpoints must be True or False, not 'yes'"):
        feedline.open(str(tmp_path), checkpoints="yes")  # type: ignore[arg-type]
