# SPDX-License-Identifier: Apache-2.0
"""HDF5 datasets as volumes, against h5py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_volumes import touched

import feedline

h5py = pytest.importorskip("h5py")

SHAPE, CHUNK = (10, 13, 17), (4, 5, 6)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def array() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(-3000, 3000, SHAPE).astype("i2")


def made(path: Path, **datasets: tuple[Any, dict[str, Any]]) -> str:
    with h5py.File(path, "w") as file:
        for name, (values, options) in datasets.items():
            file.create_dataset(name.replace("__", "/"), data=values, **options)
    return str(path)


CASES: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "chunked": {"chunks": CHUNK},
    "gzip": {"chunks": CHUNK, "compression": "gzip"},
    "shuffle": {"chunks": CHUNK, "compression": "gzip", "shuffle": True},
    "fletcher32": {"chunks": CHUNK, "fletcher32": True},
    "all": {"chunks": CHUNK, "compression": "gzip", "shuffle": True, "fletcher32": True},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["u1", "i2", ">i4", "f4", ">f8", "?"])
def test_datasets_are_h5pys(tmp_path: Path, array: Any, name: str, dtype: str) -> None:
    values = array.astype(dtype)
    path = made(tmp_path / "a.h5", x=(values, CASES[name]))
    assert np.array_equal(feedline.open(path)[0].image, values)
    patches = feedline.open(path).grid_patches((3, 7, 5), overlap=(1, 2, 0))
    for i in range(len(patches)):
        sample = patches[i]
        box = tuple(slice(int(a), int(a) + n) for a, n in zip(sample.patch_position, (3, 7, 5), strict=True))
        assert np.array_equal(sample.image, values[box])


@pytest.mark.parametrize("options", [{}, {"chunks": CHUNK, "compression": "gzip"}])
def test_unwritten_parts_are_the_fill_value(tmp_path: Path, options: Any) -> None:
    expected = np.full(SHAPE, 7, "i2")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", SHAPE, "i2", fillvalue=7, **options)
        if options:
            dataset[4:8, 5:10, 6:12] = expected[4:8, 5:10, 6:12] = 3
    assert np.array_equal(feedline.open(tmp_path / "a.h5")[0].image, expected)


def test_filters_that_a_chunk_skips(tmp_path: Path, array: Any) -> None:
    path = made(tmp_path / "a.h5", x=(array, CASES["gzip"]))
    raw = np.random.default_rng(1).integers(0, 99, CHUNK).astype("i2")
    expected = array.copy()
    expected[:4, :5, :6] = raw
    with h5py.File(path, "a") as file:
        file["x"].id.write_direct_chunk((0, 0, 0), raw.tobytes(), filter_mask=1)
    assert np.array_equal(feedline.open(path)[0].image, expected)


def test_fields_by_path(tmp_path: Path, array: Any) -> None:
    path = made(
        tmp_path / "a.h5",
        scan__volume=(array, CASES["gzip"]),
        scan__mask=((array > 0).astype("u1"), {"chunks": (5, 5, 5)}),
    )
    patches = feedline.open([path, path], fields=("scan/volume", "scan/mask")).random_crop(
        (4, 4, 4), patches=5, foreground=("mask", 1.0)
    )
    assert len(patches) == 10
    for batch in patches.loader(batch_size=5):
        assert np.array_equal(np.asarray(batch.mask), np.asarray(batch.volume) > 0)
    with pytest.raises(feedline.ConfigError, match=r"several datasets.*scan/mask, scan/volume"):
        feedline.open(path)
    with pytest.raises(feedline.ConfigError, match="has no dataset 'scan/x'"):
        feedline.open(path, fields="image=scan/x")


def test_links_are_followed_within_a_file(tmp_path: Path, array: Any) -> None:
    path = made(tmp_path / "a.h5", scan__volume=(array, CASES["gzip"]))
    made(tmp_path / "b.h5", x=(array, {}))
    with h5py.File(path, "r+") as file:
        file["alias"] = h5py.SoftLink("/scan/volume")
        file["group"] = h5py.SoftLink("/scan")
        file["dangling"] = h5py.SoftLink("/nothing")
        file["outside"] = h5py.ExternalLink(str(tmp_path / "b.h5"), "/x")
    for name in ("alias", "group/volume"):
        assert np.array_equal(feedline.open(path, fields=f"image={name}")[0].image, array)
    for name in ("dangling", "outside", "group"):  # offsets of another file would be read from this one
        with pytest.raises(feedline.ConfigError, match=f"has no dataset '{name}'; it has scan/volume"):
            feedline.open(path, fields=f"image={name}")


def test_h5py_is_imported_only_for_the_first_open(tmp_path: Path, array: Any) -> None:
    path = made(tmp_path / "a.h5", x=(array, CASES["gzip"]))
    feedline.open(path)
    code = f"import sys, feedline; feedline.open({path!r})[0]; assert 'h5py' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_changed_file_is_listed_again(tmp_path: Path, array: Any) -> None:
    path = made(tmp_path / "a.h5", x=(array, CASES["gzip"]))
    before = feedline.open([path, path])
    made(tmp_path / "b.h5", x=(array + 1, CASES["shuffle"]))
    os.replace(tmp_path / "b.h5", path)
    with pytest.raises(feedline.StorageError, match="has changed since its chunks were listed"):
        before[1]
    assert np.array_equal(feedline.open(path)[0].image, array + 1)


@pytest.mark.parametrize("name", ["contiguous", "gzip"])
def test_a_file_that_changes_while_it_is_open_is_noticed(tmp_path: Path, array: Any, name: str) -> None:
    path = made(tmp_path / "a.h5", x=(array, CASES[name]))
    patches = feedline.open(path).random_crop((4, 4, 4), patches=2)
    patches[0]
    with h5py.File(path, "r+") as file:
        file["x"][:] = array + 1
    touched(path)
    with pytest.raises(feedline.StorageError, match=r"has changed between.*a\.h5"):
        patches[0]
    assert np.array_equal(feedline.open(path)[0].image, array + 1)


def test_unsupported_datasets_are_refused(tmp_path: Path, array: Any) -> None:
    path = made(tmp_path / "a.h5", x=(array, {"chunks": CHUNK, "compression": "lzf"}))
    with pytest.raises(feedline.DataError, match="uses filter 32000, which is not supported"):
        feedline.open(path)
    path = made(tmp_path / "b.h5", x=(np.array(["a", "b"], "S3"), {}))
    with pytest.raises(feedline.ConfigError, match="volumes are numbers"):
        feedline.open(path)
    (tmp_path / "c.h5").write_bytes(b"no HDF5")
    with pytest.raises(feedline.StorageError, match="as HDF5"):
        feedline.open(tmp_path / "c.h5")
    with pytest.raises(feedline.ConfigError, match="must be local"):
        feedline.open("https://example.org/a.h5")


def test_damage_is_named(tmp_path: Path, array: Any) -> None:
    path = made(tmp_path / "a.h5", x=(array, CASES["all"]))
    with h5py.File(path) as file:
        chunk = file["x"].id.get_chunk_info(3)
    stat = os.stat(path)
    data = bytearray(Path(path).read_bytes())
    data[chunk.byte_offset + chunk.size // 2] ^= 0xFF
    Path(path).write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(feedline.DataError, match="fletcher32 checksum does not match") as raised:
        feedline.open(path)[0]
    assert "a.h5" in str(raised.value)
    for stored in (tmp_path / "cache/feedline/hdf5").iterdir():
        whole = stored.read_bytes()
        stored.write_bytes(whole[:-5] + b"\x01\x02\x03\x04\x05")
    with pytest.raises(feedline.DataError, match="list of chunks is damaged"):
        feedline.open(path)
