# SPDX-License-Identifier: Apache-2.0
"""MDS datasets, written from the specification: the batches of the same photos in a folder, every kind of field, copies
of compressed shards, and errors that name damage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_mds
import numpy as np
import pytest
from conftest import training
from range_server import serving

import feedline
from feedline import packing, verifying

Epoch = list[tuple[bytes, ...]]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decompressed copies of shards are stored with the test's files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def photos(folder: Path, tmp_path: Path) -> Path:
    """The photos of `folder` in three shards, in the same order."""
    return made_mds.of_folder(folder, tmp_path / "mds", shards=3, hashes=["sha1"])


def epoch(dataset: feedline.Dataset, batch_size: int = 4, **options: Any) -> Epoch:
    with dataset.loader(batch_size, seed=3, output="numpy", **options) as loader:
        return [tuple(field.tobytes() for field in batch) for batch in loader]


def test_gives_the_batches_of_the_same_photos_in_a_folder(folder: Path, photos: Path) -> None:
    wanted = training(feedline.open(folder))
    dataset = training(feedline.open(photos))
    assert (dataset.format, len(dataset), list(dataset.schema)) == ("mds", 21, ["image", "label"])
    for options in ({}, {"shuffle": True}, {"shuffle": True, "num_workers": 3}, {"rank": 1, "world_size": 2}):
        assert epoch(dataset, **options) == epoch(wanted, **options), options
    assert epoch(training(feedline.open(photos / "index.json"))) == epoch(wanted)
    twice = feedline.open([photos, photos], format="mds")
    assert len(twice) == 42


@pytest.mark.parametrize("compression", ["gz", "bz2:9"])
def test_compressed_shards_are_made_plain_once(folder: Path, photos: Path, tmp_path: Path, compression: str) -> None:
    source = made_mds.of_folder(folder, tmp_path / "zip", shards=2, compression=compression, hashes=["sha256", "md5"])
    wanted = epoch(training(feedline.open(photos)), shuffle=True)
    assert epoch(training(feedline.open(source)), shuffle=True) == wanted
    assert len(list((tmp_path / "cache").rglob("*.mds"))) == 2
    assert feedline.inspect(source).findings == []


def test_columns_of_every_kind(tmp_path: Path) -> None:
    columns = {"id": "int32", "w": "float32", "tokens": "ndarray:uint16", "m": "ndarray:float32:2,2", "any": "ndarray"}
    columns |= {"boxes": "ndarray:float32", "text": "str", "extra": "json", "n": "str_int", "r": "str_float"}
    samples = [
        {
            "id": -i,
            "w": i / 2,
            "tokens": np.arange(4, dtype="uint16") + i,
            "m": np.full((2, 2), i, "float32"),
            "any": np.arange(6, dtype="int64").reshape(2, 3) * i,
            "boxes": np.full((i + 1, 4), i, "float32"),
            "text": f"text {i}",
            "extra": {"k": [i]},
            "n": 10**12 + i,
            "r": i / 4,
        }
        for i in range(5)
    ]
    source = made_mds.write(tmp_path / "x", columns, samples, shards=2)
    dataset = feedline.open(source, fields=("id", "w", "tokens", "m", "any", "boxes:boxes", "text", "extra", "n", "r"))
    (batch,) = dataset.loader(5, output="numpy")
    np.testing.assert_array_equal(batch.id, -np.arange(5))
    np.testing.assert_array_equal(batch.w, np.arange(5, dtype="float32") / 2)
    np.testing.assert_array_equal(batch.tokens, [np.arange(4) + i for i in range(5)])
    np.testing.assert_array_equal(batch.m, [one["m"] for one in samples])
    np.testing.assert_array_equal(batch.any, [one["any"] for one in samples])
    assert [boxes.tolist() for boxes in batch.boxes] == [one["boxes"].tolist() for one in samples]  # type: ignore[attr-defined]
    assert list(batch.text) == [f"text {i}" for i in range(5)]
    assert list(batch.extra) == [{"k": [i]} for i in range(5)]
    np.testing.assert_array_equal(batch.n, 10**12 + np.arange(5))
    np.testing.assert_array_equal(batch.r, np.arange(5) / 4)
    assert (batch.w.dtype, batch.tokens.dtype, batch.r.dtype) == (np.float32, np.uint16, np.float64)


@pytest.mark.parametrize("form", made_mds.LINES)
def test_lines_are_read_as_streaming_reads_them(tmp_path: Path, form: str) -> None:
    values = {"n": [0, -(2**63), 2**63 - 1, 7], "r": [0.1, float("inf"), 1e-300, -2.5]}
    texts = ["", 'größe "\\ \U0001f600', "  blanks ", "a, b" if form != "csv" else "a; b"]
    samples = [{"n": n, "r": r, "t": t} for n, r, t in zip(*values.values(), texts, strict=True)]
    columns = {"n": "int", "r": "float", "t": "str"}
    plain = made_mds.write(tmp_path / "a", columns, samples, shards=2, form=form, newline="\r\n")
    zipped = made_mds.write(tmp_path / "b", columns, samples, 2, "bz2", ["md5"], form=form)
    for source in (plain, zipped):
        dataset = feedline.open(source)
        (batch,) = dataset.loader(4, output="numpy")
        assert list(batch.t) == texts
        for name, numbers in values.items():
            np.testing.assert_array_equal(batch._asdict()[name], numbers, strict=True)
        assert verifying.verify(source).findings == []
    with serving(tmp_path) as server:
        for name in "ab":
            assert [feedline.open(server.url(f"{name}/index.json"))[i].t for i in range(4)] == texts


def test_lines_are_packed(tmp_path: Path) -> None:
    samples = [{"n": 7, "t": "größe", "r": 0.5}]
    source = made_mds.write(tmp_path / "x", {"n": "int", "r": "float", "t": "str"}, samples, form="json")
    packing.pack(source, tmp_path / "tars")
    packed = feedline.open(str(tmp_path / "tars" / "000000.tar"), fields=("cls", "r.txt", "t.txt"))
    assert (int(packed[0][0]), *packed[0][1:]) == (7, "0.5", "größe")


def test_a_damaged_line_is_named_and_left_out(tmp_path: Path) -> None:
    source = made_mds.write(
        tmp_path / "x", {"n": "int", "t": "str"}, [{"n": i, "t": "x"} for i in range(8)], form="tsv"
    )
    path = source / "shard.00000.tsv"
    path.write_bytes(path.read_bytes().replace(b"5\tx", b"5,x"))
    dataset = feedline.open(source)
    with pytest.raises(
        feedline.DataError, match=r"the line has 1 cells, but there are 2 columns: n \(int\), t \(str\)"
    ) as raised:
        dataset[5]
    assert (raised.value.shard, raised.value.record, raised.value.key) == (str(path), 5, "shard_00000_tsv/00000005")
    with dataset.loader(1, output="numpy", on_error="skip", error_budget=1) as loader:
        assert sorted(int(batch.n[0]) for batch in loader) == [0, 1, 2, 3, 4, 6, 7]
    assert [finding.code for finding in feedline.inspect(source).findings] == ["bad_sample"]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_the_table_of_another_shard_is_found_out(tmp_path: Path, form: str) -> None:
    """Both shards have the same numbers of samples and bytes; a sample equals the written one, or is an error."""
    texts = ["a" * 5, "b" * 9, "c", "d" * 6, "e" * 2, "f" * 7]
    source = made_mds.write(tmp_path / "x", {"s": "str", "t": "str"}, [{"s": t, "t": t} for t in texts], 2, form=form)
    first, second = (source / f"shard.0000{i}.{form}.meta" for i in range(2))
    tables = first.read_bytes(), second.read_bytes()
    first.write_bytes(tables[1])
    second.write_bytes(tables[0])
    dataset = feedline.open(source)
    for i, text in enumerate(texts):
        try:
            assert dataset[i].t == text
        except feedline.DataError as error:
            assert (error.record, f".{form}" in str(error.shard)) == (i, True)
    assert verifying.verify(source).sound is False


def test_streams_are_mixed_by_the_columns_that_they_share(tmp_path: Path) -> None:
    """This corresponds to streaming's Stream(proportion=...); there, a batch of both fails in torch's collate."""
    web = made_mds.write(
        tmp_path / "web", {"t": "str", "url": "str"}, [{"t": f"web {i}", "url": "u"} for i in range(30)]
    )
    books = made_mds.write(tmp_path / "books", {"t": "str"}, [{"t": f"book {i}"} for i in range(10)], form="json")
    with pytest.raises(
        feedline.ConfigError, match=r"books/shard.00000.json': the first shard's column 'url' is missing.*fields="
    ):
        feedline.open([web, books], format="mds")
    joined = feedline.open([web, books], format="mds", fields="t")
    assert [joined[i].t for i in (0, 30, 39)] == ["web 0", "book 0", "book 9"]
    parts = [feedline.open(source, fields="t") for source in (web, books)]
    mixed = feedline.mix(parts, weights=[0.75, 0.25], samples=40)
    with mixed.loader(40, shuffle=True, output="numpy") as loader:
        (batch,) = loader
    assert sorted(text.split()[0] for text in batch.t) == ["book"] * 10 + ["web"] * 30
    with pytest.raises(feedline.ConfigError, match=r"dataset 1 \('.*books'\) lacks the field 'url', which dataset 0"):
        feedline.mix([feedline.open(web), parts[1]])


def test_from_a_server_it_is_the_same(photos: Path) -> None:
    wanted = epoch(training(feedline.open(photos)), shuffle=True)
    with serving(photos.parent) as server:
        assert epoch(training(feedline.open(server.url("mds/index.json"))), shuffle=True) == wanted
        assert epoch(training(feedline.open(server.url("mds"), format="mds")), shuffle=True) == wanted


def test_damage_is_named_and_left_out_where_that_can_be(photos: Path) -> None:
    path = photos / "shard.00001.mds"
    content = bytearray(path.read_bytes())
    offset = int(np.frombuffer(bytes(content[4:8]), "<u4")[0])
    content[offset : offset + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(content)
    dataset = training(feedline.open(photos))
    with pytest.raises(feedline.DataError, match="the column 'image' has 2147483647 bytes") as raised:
        dataset[7]
    assert (raised.value.shard, raised.value.record) == (str(path), 7)
    assert len(epoch(dataset, 1, on_error="skip", error_budget=1)) == 20
    found = verifying.verify(photos)
    assert {one.code for one in found.findings} >= {"checksum_differs"}


def test_verify_compares_checksums_and_reads_all(photos: Path) -> None:
    found = verifying.verify(photos)
    assert (found.samples, found.format, [one.code for one in found.findings]) == (21, "mds", [])
    path = photos / "shard.00002.mds"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # of a label: reading cannot distinguish it from another label
    path.write_bytes(content)
    assert [one.code for one in verifying.verify(photos).findings] == ["checksum_differs"]


def test_pickles_are_refused(tmp_path: Path) -> None:
    source = made_mds.write(tmp_path / "x", {"a": "int", "p": "pkl"}, [{"a": 1, "p": b"\x80\x04N."}])
    with pytest.raises(feedline.ConfigError, match="'p' is stored as 'pkl', which is not supported: loading a pickle"):
        feedline.open(source)
    assert int(feedline.open(source, fields="a")[0].a) == 1


def test_pack_writes_all_columns(photos: Path, tmp_path: Path) -> None:
    packing.pack(photos, tmp_path / "tars")
    packed = feedline.open(str(tmp_path / "tars" / "000000.tar"), fields="cls")
    wanted = feedline.open(photos, fields="label")
    assert len(packed) == 21
    assert [int(packed[i].cls) for i in range(21)] == [int(wanted[i].label) for i in range(21)]
