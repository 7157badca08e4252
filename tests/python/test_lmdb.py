# SPDX-License-Identifier: Apache-2.0
"""LMDB files, written from the layout of their pages: the batches of the same photos in a folder, the usual layouts,
and an error for damage that would mislead liblmdb.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_lmdb
import numpy as np
import pytest
from conftest import training
from range_server import serving

import feedline
from feedline import packing, staging, verifying

Epoch = list[tuple[bytes, ...]]


@pytest.fixture
def database(folder: Path, tmp_path: Path) -> Path:
    """The photos of `folder` as Datums, in the same order."""
    return made_lmdb.of_folder(folder, tmp_path / "train_lmdb")


def epoch(dataset: feedline.Dataset, batch_size: int = 4, **options: Any) -> Epoch:
    with dataset.loader(batch_size, seed=3, output="numpy", **options) as loader:
        return [tuple(field.tobytes() for field in batch) for batch in loader]


def small(path: Path, count: int = 6, **options: int) -> Path:
    """Numbers and texts."""
    entries = {f"n-{i:04d}".encode(): str(i).encode() for i in range(count)}
    entries |= {f"text-{i:04d}".encode(): f"text {i} ".encode() * (600 * (i % 2) + 1) for i in range(count)}
    return made_lmdb.write(path, entries, **options)


SMALL = ("n=n-{:04d}:value", "text-{:04d}")


def values(path: Path, **options: Any) -> list[tuple[int, str]]:
    dataset = feedline.open(path, fields=SMALL, **options)
    return [(int(dataset[i].n), dataset[i].text) for i in range(len(dataset))]


def wanted(count: int) -> list[tuple[int, str]]:
    return [(i, f"text {i} " * (600 * (i % 2) + 1)) for i in range(count)]


def test_a_function_of_the_keys_reports_which_samples_there_are_and_in_which_order(tmp_path: Path) -> None:
    names = [f"{'train' if i % 3 else 'val'}_{i:02d}" for i in range(20)]
    entries = {f"{name}.txt".encode(): name.encode() for name in names}
    entries |= {f"{name}.cls".encode(): str(i).encode() for i, name in enumerate(names)}
    dataset = feedline.open(made_lmdb.write(tmp_path / "x.lmdb", entries), fields=("text={key}.txt", "n={key}.cls"))
    asked: list[list[str]] = []

    def latest_first(keys: list[str]) -> list[str]:
        asked.append(keys)
        return sorted((key for key in keys if key.startswith("val_")), key=lambda key: -int(key[4:]))

    chosen = dataset.subset(keys=latest_first)
    assert asked == [sorted(names)]
    assert [chosen.key(i) for i in range(len(chosen))] == [f"val_{i:02d}" for i in (18, 15, 12, 9, 6, 3, 0)]
    assert [(chosen[i].text, int(chosen[i].n)) for i in range(7)] == [
        (f"val_{i:02d}", i) for i in (18, 15, 12, 9, 6, 3, 0)
    ]
    listed = dataset.subset(keys=["train_01", "val_00", "train_01"])
    assert [int(listed[i].n) for i in range(3)] == [1, 0, 1]
    for keys, said in (
        (["val_0"], "no sample has the key 'val_0'; did you mean 'val_0[0-9]'"),
        ([b"val_00"], "a key must be text"),
        ("val_00", "sample names, or a function"),
        (lambda keys: None, "sample names, or a function"),
        ([], "at least one|no sample"),
    ):
        with pytest.raises(feedline.ConfigError, match=said):
            dataset.subset(keys=keys)  # type: ignore[arg-type]
    for arguments in ({}, {"indices": [1], "keys": ["val_00"]}):
        with pytest.raises(feedline.ConfigError, match="pass indices or keys"):
            dataset.subset(**arguments)  # type: ignore[arg-type]


def test_a_key_that_two_samples_have_is_refused(tmp_path: Path) -> None:
    both = [made_lmdb.write(tmp_path / name, {b"a.txt": b"1", name.encode() + b".txt": b"2"}) for name in ("b", "c")]
    dataset = feedline.open([str(path) for path in both], fields="text={key}.txt")
    with pytest.raises(feedline.ConfigError, match="several samples have the key 'a'"):
        dataset.subset(keys=["b", "a"])
    assert dataset.subset(keys=["c", "b"]).key(0) == "c"


def test_gives_the_batches_of_the_same_photos_in_a_folder(folder: Path, database: Path) -> None:
    expected = training(feedline.open(folder))
    dataset = training(feedline.open(database))
    assert (dataset.format, len(dataset), list(dataset.schema)) == ("lmdb", 21, ["image", "label"])
    for options in ({}, {"shuffle": True}, {"shuffle": True, "num_workers": 3}, {"rank": 1, "world_size": 2}):
        assert epoch(dataset, **options) == epoch(expected, **options), options
    assert dataset[20].image.tobytes() == expected[20].image.tobytes()


def test_sources_are_folders_files_and_lists(folder: Path, database: Path, tmp_path: Path) -> None:
    (tmp_path / "x.mdb").write_bytes((database / "data.mdb").read_bytes())
    (tmp_path / "no end").write_bytes((database / "data.mdb").read_bytes())
    expected = epoch(training(feedline.open(database)))
    for name in ("x.mdb", "no end", "train_lmdb/data.mdb"):
        dataset = feedline.open(tmp_path / name)
        assert dataset.format == "lmdb" and epoch(training(dataset)) == expected, name
    twice = feedline.open([database, tmp_path / "x.mdb"]).resize((8, 8))
    assert len(twice) == 42 and twice[30].image.tobytes() == twice[9].image.tobytes() != twice[10].image.tobytes()


def test_pages_of_any_size_and_trees_of_any_height(tmp_path: Path) -> None:
    for size in (512, 4096, 16384, 32768):
        for nodes in (2, 1000):
            path = small(tmp_path / f"{size}-{nodes}.mdb", 40, size=size, nodes=nodes)
            assert values(path) == wanted(40), (size, nodes)


def test_pixels_that_are_stored_decoded(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    images = draw.integers(0, 256, (7, 9, 11, 3), np.uint8)
    entries = {
        f"{i:08d}".encode(): made_lmdb.raw_datum(3, 9, 11, image[:, :, ::-1].transpose(2, 0, 1).tobytes(), i * 3)
        for i, image in enumerate(images)
    }
    dataset = feedline.open(made_lmdb.write(tmp_path / "cifar_lmdb" / "data.mdb", entries)).resize((9, 11))
    (batch,) = dataset.loader(7, output="numpy", layout="NHWC")
    np.testing.assert_array_equal(batch.image, images)
    np.testing.assert_array_equal(batch.label, np.arange(7) * 3)
    grey = {b"0": made_lmdb.raw_datum(1, 2, 2, b"abcd", 1)}
    one = feedline.open(made_lmdb.write(tmp_path / "mnist_lmdb" / "data.mdb", grey)).resize((2, 2))[0]
    assert set(one.image.tobytes()) == set(b"abcd")


def test_texts_of_mmocr_and_lists_of_openmmlab(folder: Path, tmp_path: Path) -> None:
    photos = sorted(folder.glob("*/*.jpg"))[:5]
    entries = {b"num-samples": b"5"}
    for i, photo in enumerate(photos, 1):
        entries |= {b"image-%09d" % i: photo.read_bytes(), b"label-%09d" % i: f"wörd {i}".encode()}
    dataset = feedline.open(made_lmdb.write(tmp_path / "words.lmdb" / "data.mdb", entries)).resize((8, 8))
    assert [dataset[i].label for i in range(5)] == [f"wörd {i}" for i in range(1, 6)]
    named = {photo.stem.encode(): photo.read_bytes() for photo in photos}
    path = made_lmdb.write(tmp_path / "sr.lmdb" / "data.mdb", named)
    order = [photos[3], photos[1], photos[4]]
    lines = "".join(f"{photo.stem}.png (32,32,3) 1\n" for photo in order)
    path.with_name("meta_info.txt").write_text(lines)
    dataset = feedline.open(path.parent).resize((16, 16))
    assert list(dataset.schema) == ["image"]
    expected = feedline.open(folder).resize((16, 16))
    for i, position in enumerate((3, 1, 4)):
        assert dataset[i].image.tobytes() == expected[position].image.tobytes()


def test_every_flipped_bit_of_pages_is_an_error_or_the_same_samples(tmp_path: Path) -> None:
    """Damages the first bytes of the meta pages, and all of a leaf and a branch; a value's own bytes have no
    checksum.
    """
    path = small(tmp_path / "x.mdb", 4, nodes=6)
    good, right = path.read_bytes(), wanted(4)
    pages = len(good) // 4096
    kinds = {page: struct.unpack_from("<H", good, page * 4096 + 10)[0] for page in range(pages)}
    leaf = next(page for page, kind in kinds.items() if kind == 2)
    branch = next(page for page, kind in kinds.items() if kind == 1)
    places = [*range(16, 24), *range(40, 44), *range(88, 152)]
    for page in (leaf, branch):
        used = struct.unpack_from("<H", good, page * 4096 + 14)[0]
        places += [page * 4096 + at for at in [*range(32), *range(used, 4096, 3)]]
    shown = 0
    for position in places:
        for bit in (0, 3, 7):
            content = bytearray(good)
            content[position] ^= 1 << bit
            path.write_bytes(content)
            (path.parent / ".feedline" / f"{path.name}.feedline-index").unlink(missing_ok=True)
            try:
                found = values(path, format="lmdb")
            except feedline.Error:
                continue
            shown += 1
            assert len(found) == len(right), (position, bit)
            for (_, text), (_, other) in zip(found, right, strict=True):
                # a value's bytes may differ, and the size of a value with its own pages if these have room
                assert len(text) == len(other) or min(len(text), len(other)) > 4080, (position, bit)
    assert shown > 0


@pytest.mark.parametrize(
    "damage, says",
    [
        (lambda data: data[:-4096], "after the end of the file"),
        (lambda data: data[:5000], "ends within its meta pages"),
        (lambda data: data[:16] + b"\xbe\xef\xc0\xde" + data[20:], "big-endian machine"),
        (lambda data: data[:12] + b"\xde\xc0\xef\xbe" + b"\0" * 4 + data[20:], "machine of 32 bits"),
        (lambda data: data[:20] + struct.pack("<I", 999) + data[24:], "version 999"),
        (lambda data: b"no database at all" * 1000, "not an LMDB file"),
    ],
)
def test_what_is_no_whole_database_is_an_error_of_opening(
    tmp_path: Path, damage: Callable[[bytes], bytes], says: str
) -> None:
    path = small(tmp_path / "x.mdb")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(feedline.DataError, match=says) as caught:
        feedline.open(path, fields=SMALL)
    assert caught.value.shard == str(path)
    assert [found.severity for found in feedline.inspect(path, fields=SMALL).findings] == ["error"]


def test_a_damaged_value_is_left_out_if_the_loader_allows_it(tmp_path: Path) -> None:
    path = small(tmp_path / "x.mdb", 50)
    dataset = feedline.open(path, fields=SMALL)
    content = bytearray(path.read_bytes())
    position = content.index(b"text-0036")  # in its node, whose key then differs
    content[position + 8] = ord("9")
    stat = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(feedline.DataError, match="is not at its position in the index") as caught:
        list(dataset.loader(10, output="numpy"))
    assert (caught.value.record, caught.value.key, caught.value.stage) == (36, "0036", "format")
    with dataset.loader(10, output="numpy", on_error="skip", error_budget=1) as loader:
        assert sorted(int(n) for batch in loader for n in batch.n) == [i for i in range(50) if i != 36]


def test_a_database_that_others_hold_locked_is_read(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    path, held = small(tmp_path / "set" / "data.mdb"), tmp_path / "set" / "lock.mdb"
    held.write_bytes(bytes(8192))
    with path.open("r+b") as data, held.open("r+b") as lock:
        for file in (data, lock):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert values(tmp_path / "set") == wanted(6)
    assert held.read_bytes() == bytes(8192)


def test_a_database_that_is_written_to_is_noticed(tmp_path: Path) -> None:
    path = small(tmp_path / "x.mdb", 20)
    dataset = feedline.open(path, fields=SMALL)
    with (
        dataset.loader(10, output="numpy", epochs=200) as loader,
        pytest.raises(feedline.StorageError, match="has changed"),
    ):
        for i, _ in enumerate(loader):
            if i == 0:
                with path.open("ab") as file:
                    file.write(bytes(4096))


def test_threads_of_python_and_forks_read_one_database(database: Path) -> None:
    dataset = training(feedline.open(database))
    expected, found = epoch(dataset, shuffle=True), []
    threads = [threading.Thread(target=lambda: found.append(epoch(dataset, shuffle=True))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3


def test_from_a_server_the_batches_are_the_same(database: Path, tmp_path: Path) -> None:
    (database.parent / "x.mdb").write_bytes((database / "data.mdb").read_bytes())
    (database.parent / "set.lmdb").mkdir()
    (database.parent / "set.lmdb" / "data.mdb").write_bytes((database / "data.mdb").read_bytes())
    expected = epoch(training(feedline.open(database)), shuffle=True)
    with serving(database.parent) as server:
        for name in ("x.mdb", "set.lmdb/"):
            dataset = feedline.open(server.url(name))
            assert dataset.format == "lmdb"
            assert epoch(training(dataset), shuffle=True) == expected, name
        cached = feedline.open(server.url("x.mdb"), cache=tmp_path / "node")
        assert epoch(training(cached), shuffle=True) == expected


def test_is_packed_verified_and_inspected(folder: Path, database: Path, tmp_path: Path) -> None:
    packing.pack(database, tmp_path / "shards")
    packed = feedline.open(str(next((tmp_path / "shards").glob("*.tar"))))
    assert epoch(training(packed)) == epoch(training(feedline.open(folder)))
    assert not [found for found in feedline.inspect(database).findings if found.severity == "error"]
    report = verifying.verify(database, decode=True)
    assert (report.format, report.samples, report.order_exact) == ("lmdb", 21, True)
    assert not [found for found in report.findings if found.severity == "error"]
    of_file = verifying.verify(database / "data.mdb")
    assert of_file.samples == 21 and not [found for found in of_file.findings if found.severity == "error"]


def test_states_resume_in_another_copy(database: Path, tmp_path: Path) -> None:
    dataset = training(feedline.open(database))
    with dataset.loader(4, shuffle=True, seed=1, output="numpy") as loader:
        batches = iter(loader)
        next(batches)
        state = json.dumps(loader.state_dict())
        rest = [batch.image.tobytes() for batch in batches]
    copy = tmp_path / "copy.mdb"
    copy.write_bytes((database / "data.mdb").read_bytes())
    with training(feedline.open(copy)).loader(4, shuffle=True, seed=1, output="numpy") as loader:
        loader.load_state_dict(json.loads(state))
        assert [batch.image.tobytes() for batch in loader] == rest


def test_a_staged_folder_opens_to_the_same_samples(database: Path, tmp_path: Path) -> None:
    staged = staging.stage(database, tmp_path / "local")
    assert epoch(training(feedline.open(staged.opens))) == epoch(training(feedline.open(database)))
