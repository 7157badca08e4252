# SPDX-License-Identifier: Apache-2.0
"""Rows of memory-mapped arrays: data that a function does not access is not read, and writes do not change the
source.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline

ROWS, SHAPE = 3, (24, 512, 512)  # a row of int16 is 12 MiB; the kernel may map 2 MiB if one byte is accessed
ROW_BYTES = 2 * int(np.prod(SHAPE))


_STEP = 5_000  # difference between a row's numbers and those of the next row


@functools.cache
def volumes() -> np.ndarray:
    """Each number shows its row and its first two indices."""
    z, y = np.ogrid[: SHAPE[0], : SHAPE[1]]
    one = np.broadcast_to((z * SHAPE[1] + y)[:, :, None], SHAPE)
    numbers = np.stack([one + row * _STEP for row in range(ROWS)]).astype(np.int16)
    numbers.flags.writeable = False
    return numbers


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("volumes")
    values = volumes()
    np.save(folder / "x.npy", values)
    np.savez(folder / "x.npz", x=values, other=np.arange(ROWS))
    values.tofile(folder / "x.bin")
    with (folder / "x.raw").open("wb") as file:
        file.write(b"a header of the user's" + values.tobytes())
    return folder


def of_torch(folder: Path) -> feedline.Dataset:
    torch = pytest.importorskip("torch")
    numbers = torch.from_file(str(folder / "x.bin"), shared=True, size=ROWS * ROW_BYTES // 2, dtype=torch.int16)
    return feedline.arrays(x=numbers.view(ROWS, *SHAPE))


def mapped(folder: Path, mode: Any = "r") -> np.ndarray:
    array: np.ndarray = np.load(folder / "x.npy", mmap_mode=mode)
    return array


def raw(folder: Path) -> np.ndarray:
    return np.memmap(folder / "x.raw", np.int16, "r", offset=22, shape=(ROWS, *SHAPE))


SOURCES: dict[str, Callable[[Path], feedline.Dataset]] = {
    "memmap": lambda folder: feedline.arrays(x=mapped(folder)),
    "memmap that is writable": lambda folder: feedline.arrays(x=mapped(folder, "r+")),
    "memmap of a raw file": lambda folder: feedline.arrays(x=raw(folder)),
    "plain array over a memmap": lambda folder: feedline.arrays(x=np.asarray(mapped(folder))),
    "rows from the last to the first": lambda folder: feedline.arrays(x=mapped(folder)[::-1])[::-1],
    "npy": lambda folder: feedline.open(folder / "x.npy"),
    "npz": lambda folder: feedline.open(folder / "x.npz", fields="x"),
    "tensor": of_torch,
    "beside an image": lambda folder: feedline.arrays(
        x=mapped(folder), image=np.zeros((ROWS, 8, 8, 3), np.uint8), fields="image:image"
    ).center_crop(8),
    "subset": lambda folder: feedline.arrays(x=mapped(folder)).subset([0, 1, 2]),
    "mixture": lambda folder: feedline.mix([feedline.arrays(x=mapped(folder))]),
    "ragged": lambda folder: feedline.arrays(
        x=feedline.ragged(mapped(folder).reshape(-1, *SHAPE[1:]), lengths=[SHAPE[0]] * ROWS)
    ),
}
NO_MAP = {"ragged"}  # map() refuses samples of different lengths
# Their memory may change after a sample was delivered, so a sample is a copy.
COPIED = {"memmap that is writable", "tensor"}


def resident(array: np.ndarray) -> int:
    """Returns the bytes of the array's mapping that this process has accessed."""
    address = array.__array_interface__["data"][0]
    is_it = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            is_it = int(found[1], 16) <= address < int(found[2], 16)
        elif is_it and line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the array is in no mapping")


def checksums(folder: Path) -> dict[str, int]:
    return {path.name: zlib.crc32(path.read_bytes()) for path in folder.iterdir()}


class Crop:
    """Reads a small part of the volume; returns it, and how much of the volume was accessed."""

    def __init__(self) -> None:
        self.touched: list[int] = []

    def __call__(self, volume: np.ndarray) -> np.ndarray:
        part = volume[4:6, 100:104, 7:9].copy()
        self.touched.append(resident(volume))
        return part


@pytest.mark.parametrize("source", sorted(set(SOURCES) - NO_MAP))
def test_a_function_reads_what_it_touches(stored: Path, source: str) -> None:
    crop = Crop()
    with SOURCES[source](stored).map(crop, "x").loader(1, num_workers=1, output="numpy") as loader:
        parts = [np.array(batch.x[0]) for batch in loader]
    for part, volume in zip(parts, volumes(), strict=True):
        np.testing.assert_array_equal(part, volume[4:6, 100:104, 7:9])
    assert max(crop.touched) < ROW_BYTES // 2, "a copy touches all of the row"


@pytest.mark.parametrize("source", sorted(set(SOURCES) - COPIED))
def test_a_sample_is_read_when_it_is_touched(stored: Path, source: str) -> None:
    dataset = SOURCES[source](stored)
    sample = dataset[1].x
    assert resident(sample) < ROW_BYTES // 2
    np.testing.assert_array_equal(sample, volumes()[1])
    if source not in NO_MAP:
        pair = feedline.arrays(x=mapped(stored), y=np.arange(ROWS)).map(lambda y: y + 1, "y")[1]
        assert resident(pair.x) < ROW_BYTES // 2
        assert pair.y == 2


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_what_is_written_changes_no_source(stored: Path, source: str) -> None:
    before = checksums(stored)
    dataset = SOURCES[source](stored)
    sample = dataset[2].x
    sample *= 2
    np.testing.assert_array_equal(sample, volumes()[2] * 2)
    np.testing.assert_array_equal(dataset[2].x, volumes()[2])

    def doubled(volume: np.ndarray) -> np.ndarray:
        volume *= 2
        return volume

    if source not in NO_MAP:
        with dataset.map(doubled, "x").loader(1, num_workers=2, output="numpy") as loader:
            for _ in range(2):
                found = np.concatenate([batch.x for batch in loader])
                np.testing.assert_array_equal(found, volumes() * 2)
    del dataset
    gc.collect()
    assert checksums(stored) == before


@pytest.mark.parametrize("source", ["memmap", "npy", "npz"])
def test_a_row_outlives_its_dataset(stored: Path, tmp_path: Path, source: str) -> None:
    suffix = ".npz" if source == "npz" else ".npy"
    (tmp_path / f"x{suffix}").write_bytes((stored / f"x{suffix}").read_bytes())
    retained: list[np.ndarray] = []

    def keep(volume: np.ndarray) -> np.ndarray:
        retained.append(volume)
        return volume[:1, :1, :1]

    dataset = SOURCES[source](tmp_path)
    retained.append(dataset[0].x)
    with dataset.map(keep, "x").loader(1, num_workers=1, output="numpy") as loader:
        assert len(list(loader)) == ROWS
    for path in tmp_path.iterdir():
        path.unlink()
    del dataset, loader
    gc.collect()
    # the first row is also read to determine the function's result types
    numbers = [int(row[0, 0, 0]) // _STEP for row in retained]
    assert set(numbers) == {0, 1, 2}
    for number, row in zip(numbers, retained, strict=True):
        np.testing.assert_array_equal(row, volumes()[number])


def test_samples_and_batches_do_not_change_with_their_source(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", volumes())
    source = mapped(tmp_path, "r+")
    dataset = feedline.arrays(x=source)
    sample = dataset[0].x
    with dataset.map(lambda volume: volume, "x").loader(ROWS, output="numpy") as loader:
        (batch,) = loader
    source[:] = 7
    np.testing.assert_array_equal(sample, volumes()[0])
    np.testing.assert_array_equal(batch.x, volumes())
    np.testing.assert_array_equal(dataset[0].x, np.full(SHAPE, 7))


def test_a_file_that_was_replaced_is_read_as_it_was_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", volumes())
    dataset = feedline.arrays(x=mapped(tmp_path))
    np.save(tmp_path / "new.npy", volumes() + 1)
    os.replace(tmp_path / "new.npy", tmp_path / "x.npy")
    np.testing.assert_array_equal(dataset[1].x, volumes()[1])
    with dataset.map(lambda volume: volume[:2, :2, :2], "x").loader(1, output="numpy") as loader:
        np.testing.assert_array_equal(next(iter(loader)).x[0], volumes()[0, :2, :2, :2])


def test_opening_a_file_reads_no_more_than_some_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.lib.format.open_memmap(path, "w+", np.int16, (64, *SHAPE)).flush()  # 1 GiB without a block on the disk
    dataset = feedline.open(path)
    sample = np.asarray(dataset[63].x)
    assert not sample.any()
    touched = 0
    is_it = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_it = line.endswith(str(path)) and "r--s" in line
        elif is_it and line.startswith("Rss:"):
            touched += int(line.split()[1]) * 1024
    assert touched < 64 * ROW_BYTES // 8


# ---- writable=False ----


def in_memory() -> np.ndarray:
    return volumes().copy()


def in_memory_tensor() -> Any:
    return pytest.importorskip("torch").from_numpy(in_memory())


@pytest.mark.parametrize("make", [in_memory, in_memory_tensor], ids=["array", "tensor"])
def test_a_function_that_only_reads_sees_the_array_itself(make: Callable[[], Any]) -> None:
    source = make()
    memory = np.asarray(source)
    seen: list[tuple[bool, bool]] = []

    def crop(volume: np.ndarray) -> np.ndarray:
        seen.append((np.shares_memory(volume, memory), volume.flags.writeable))
        return volume[1:3, :4, :4]

    dataset = feedline.arrays(x=source, y=np.arange(ROWS)).map(crop, "x", writable=False)
    with dataset.loader(ROWS, num_workers=2, output="numpy") as loader:
        (batch,) = loader
    np.testing.assert_array_equal(batch.x, volumes()[:, 1:3, :4, :4])
    np.testing.assert_array_equal(batch.y, np.arange(ROWS))
    assert set(seen) == {(True, False)}
    assert "writable=False" in repr(dataset)
    memory[:] = 0
    np.testing.assert_array_equal(batch.x, volumes()[:, 1:3, :4, :4])


def test_a_function_that_may_write_gets_arrays_of_its_own() -> None:
    source = in_memory()
    seen: list[tuple[bool, bool]] = []

    def doubled(volume: np.ndarray) -> np.ndarray:
        seen.append((np.shares_memory(volume, source), volume.flags.writeable))
        volume *= 2
        return volume[:1, :4, :4]

    once = feedline.arrays(x=source).map(doubled, "x")
    for dataset in (once, once.map(lambda volume: volume, "x", writable=False)):  # not all of them are only read
        with dataset.loader(ROWS, output="numpy") as loader:
            (batch,) = loader
        np.testing.assert_array_equal(batch.x, volumes()[:, :1, :4, :4] * 2)
    assert set(seen) == {(False, True)}
    np.testing.assert_array_equal(source, volumes())


class Proxy:
    """Has every attribute, like a mock or a remote object."""

    def __getattr__(self, name: str) -> bool:
        if name.startswith("__"):
            raise AttributeError(name)
        return True

    def __call__(self, number: int) -> int:
        return 2 * number


def test_a_function_with_every_attribute_is_none_of_this_package() -> None:
    with feedline.arrays(x=np.arange(4)).map(Proxy(), "x").loader(4, output="numpy") as loader:
        (batch,) = loader
    np.testing.assert_array_equal(batch.x, [0, 2, 4, 6])


def test_writing_to_a_read_only_row_names_the_way_out() -> None:
    def doubled(volume: np.ndarray) -> np.ndarray:
        volume *= 2
        return volume

    dataset = feedline.arrays(x=volumes()).map(doubled, "x", writable=False)
    with pytest.raises(feedline.DataError, match=r"read-only; writable=False passes read-only arrays"):
        dataset[0]
    with pytest.raises(feedline.ConfigError, match="writable"):
        feedline.arrays(x=volumes()).map(doubled, "x", writable=1)  # type: ignore[arg-type]


# ---- files that become shorter ----

CUT = """
import os, sys
import numpy as np
import feedline

folder, kind, size, door = sys.argv[1:]
row = (1024, 1024) if size == "large" else (16,)
values = np.arange(8 * int(np.prod(row)), dtype=np.int32).reshape(8, *row)
path = os.path.join(folder, "x." + {"npy": "npy", "npz": "npz", "images": "npy"}.get(kind, "raw"))
if kind == "npz":
    np.savez(path, x=values, y=np.arange(8))
elif kind == "raw":
    values.tofile(path)
elif kind == "images":
    np.save(path, np.zeros((8, 64, 64, 3), np.uint8))
else:
    np.save(path, values)
if kind == "raw":
    dataset = feedline.arrays(x=np.memmap(path, np.int32, "r", shape=values.shape))
elif kind == "images":
    dataset = feedline.arrays(x=np.load(path, mmap_mode="r"), fields="x:image").center_crop(32)
else:
    dataset = feedline.open(path)
if door == "map":
    dataset = dataset.map(lambda x: x[:1].copy(), "x")
with dataset.loader(2, output="numpy") as loader:
    assert len(list(loader)) == 4
loader = dataset.loader(2, num_workers=1, output="numpy")
os.truncate(path, 400)
try:
    dataset[5] if door == "sample" else list(loader)
except feedline.StorageError as error:
    assert "became shorter" in str(error) and path in str(error), error
    assert error.key == ("row 5" if door == "sample" else "row 0"), error
    print("named")
"""


FILES = [(kind, size) for kind in ("npy", "npz", "raw") for size in ("large", "small")] + [("images", "small")]


@pytest.mark.parametrize(("kind", "size"), FILES)
@pytest.mark.parametrize("door", ["loader", "map", "sample"])
def test_a_file_that_is_cut_is_an_error(tmp_path: Path, kind: str, size: str, door: str) -> None:
    command = [sys.executable, "-c", CUT, str(tmp_path), kind, size, door]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout) == (0, "named\n"), ended.stderr
