# SPDX-License-Identifier: Apache-2.0
"""LitData's chunks of Arrow rows have the same values as in LitData, and damage is reported."""

from __future__ import annotations

import decimal
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_litdata
import numpy as np
import pytest
from range_server import serving

import feedline
from feedline import verifying

pa = pytest.importorskip("pyarrow")


def arrow_file(rows: list[dict[str, Any]], compression: str | None = None, batch: int = 256) -> tuple[int, bytes]:
    """An Arrow file like LitData's: a table of the rows, in batches."""
    table, out = pa.Table.from_pylist(rows), io.BytesIO()
    with pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=batch)
    return len(rows), out.getvalue()


def arrow_stream(rows: list[dict[str, Any]]) -> tuple[int, bytes]:
    table, out = pa.Table.from_pylist(rows), io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return len(rows), out.getvalue()


def row(i: int) -> dict[str, Any]:
    return {
        "i": i - 3,
        "f": i / 4,
        "s": f"text {i}",
        "b": bytes([i]) * (i + 1),
        "t": i % 2 == 0,
        "l": list(range(i % 4)),
        "m": [[i, i + 1], [i + 2, i + 3]],
        "d": {"x": i, "y": {"z": f"z{i}"}},
    }


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def wanted(i: int) -> list[Any]:
    one = row(i)
    return [*(one[name] for name in "ifsbtlm"), one["d"]["x"], one["d"]["y"]["z"]]


@pytest.mark.parametrize("kind", ["file", "zstd", "lz4", "small batches", "stream"])
def test_values_of_every_kind(tmp_path: Path, kind: str) -> None:
    rows = [row(i) for i in range(11)]
    write: Callable[[list[dict[str, Any]]], tuple[int, bytes]] = {
        "file": arrow_file,
        "zstd": lambda part: arrow_file(part, "zstd"),
        "lz4": lambda part: arrow_file(part, "lz4"),
        "small batches": lambda part: arrow_file(part, batch=2),
        "stream": arrow_stream,
    }[kind]
    source = made_litdata.rows(tmp_path / "x", [write(rows[:7]), write(rows[7:])])
    dataset = feedline.open(source).collate("list", fields="l")
    assert (dataset.format, len(dataset)) == ("litdata", 11)
    assert list(dataset.schema) == ["i", "f", "s", "b", "t", "l", "m", "d.x", "d.y.z"]
    assert [[plain(value) for value in dataset[i]] for i in range(11)] == [wanted(i) for i in range(11)]
    report = verifying.verify(source)
    assert (report.samples, report.findings) == (11, [])
    with serving(tmp_path) as server:
        afar = feedline.open(server.url("x/index.json")).collate("list", fields="l")
        assert [plain(value) for value in afar[8]] == wanted(8)


def test_images_in_rows_are_decoded(folder: Path, tmp_path: Path) -> None:
    files = sorted(folder.glob("*/*.jpg"))
    classes = sorted({file.parent.name for file in files})
    rows = [{"image": file.read_bytes(), "label": classes.index(file.parent.name)} for file in files]
    source = made_litdata.rows(tmp_path / "x", [arrow_file(rows[:5]), arrow_file(rows[5:])])
    chains = [feedline.open(location).resize((16, 16)) for location in (folder, source)]
    for ours, theirs in zip(*(chain.loader(4, output="numpy") for chain in chains), strict=True):
        np.testing.assert_array_equal(ours.image, theirs.image)
        np.testing.assert_array_equal(ours.label, theirs.label)


def test_values_that_lack_in_some_rows_or_chunks(tmp_path: Path) -> None:
    first = [{"a": i, "n": None} for i in range(3)]
    second = [{"a": i, "n": None if i == 4 else f"n{i}"} for i in range(3, 6)]
    source = made_litdata.rows(tmp_path / "x", [arrow_file(first), arrow_file(second)])
    dataset = feedline.open(source, missing="none").collate("list", fields="n")
    (batch,) = dataset.loader(6, output="numpy")
    assert list(batch.n) == [None, None, None, "n3", None, "n5"]
    assert [tuple(one) for one in feedline.open(source, missing="skip")] == [(3, "n3"), (5, "n5")]
    with pytest.raises(feedline.DataError, match=r"field 'n': the row has no value in the column 'n'") as raised:
        feedline.open(source)[4]
    assert (raised.value.key, raised.value.record) == ("chunk-0-1_bin/00000001", 4)
    assert len(feedline.open(source, fields="a")) == 6


def test_values_without_a_field_are_refused_by_name(tmp_path: Path) -> None:
    one = decimal.Decimal(1)
    rows = [{"a": 1, "words": [one, one], "boxes": [{"p": one}], "other": None}] * 2
    source = made_litdata.rows(tmp_path / "x", [arrow_file(rows)])
    assert list(feedline.open(source).schema) == ["a"]
    with pytest.raises(feedline.ConfigError, match="the column 'words' holds list of decimals"):
        feedline.open(source, fields=["words"])
    with pytest.raises(feedline.ConfigError, match=r"the column 'boxes\.p' holds list of decimals"):
        feedline.open(source, fields=["boxes.p"])
    unread = [one.text for one in feedline.inspect(source).findings if one.code == "unread_column"]
    assert [text.split("'")[1] for text in unread] == ["words", "boxes.p", "other"]


def test_chunks_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    ints, texts = arrow_file([{"a": 1}]), arrow_file([{"a": "x"}])
    source = made_litdata.rows(tmp_path / "x", [ints, texts])
    with pytest.raises(feedline.ConfigError, match="the column 'a' holds text in this file, but int64 in others"):
        feedline.open(source)
    values = made_litdata.chunk([made_litdata.sample({"a": "int"}, {"a": 5})])
    (source / "chunk-0-1.bin").write_bytes(values)
    with pytest.raises(feedline.ConfigError, match="has no Arrow rows, but the first chunk of the dataset does"):
        feedline.open(source)
    stored = made_litdata.write(tmp_path / "y", {"a": "int"}, [{"a": 1}])
    rows = made_litdata.rows(tmp_path / "z", [ints])
    with pytest.raises(feedline.ConfigError, match=r"stores its samples as Arrow rows, but '.*y' does not"):
        feedline.open([stored, rows], format="litdata")
    both = feedline.open([rows, rows], format="litdata")
    assert [int(one.a) for one in both] == [1, 1]


def test_damage_is_named(tmp_path: Path) -> None:
    chunk = arrow_file([{"image": b"12345678", "n": i} for i in range(4)])
    source = made_litdata.rows(tmp_path / "x", [chunk, chunk])
    path = source / "chunk-0-1.bin"
    content = path.read_bytes()
    footer_bytes = struct.unpack("<I", content[-22:-18])[0]  # before "ARROW1", the size of the rows and "LDARW01"
    changed = content[: -22 - footer_bytes] + b"\xff" * footer_bytes + content[-22:]
    cases = [
        (content[:-1], "does not end with"),
        (content[:-8] + b"LDARW02\0", "does not end with"),
        (content[:-12] + struct.pack("<I", 1 << 31) + content[-8:], "do not fit into the chunk's"),
        (content[:-12] + struct.pack("<I", 5) + content[-8:], "damaged"),
        (struct.pack("<I", 3) + content[4:], "the header has 3 samples, but the index has 4"),
        (content[:6], "too few for the end mark"),
        (made_litdata.row_chunk(4, arrow_file([{"image": b"1", "n": 1}] * 3)[1]), "3 Arrow rows for 4 samples"),
        (changed, "an offset points outside it"),
    ]
    for damaged, words in cases:
        path.write_bytes(damaged)
        with pytest.raises(feedline.DataError, match=words) as raised:
            feedline.open(source, fields=["image:bytes", "n"])
        assert (raised.value.dataset, raised.value.shard) == (str(source), str(path)), words
        codes = [(one.code, one.shard) for one in feedline.inspect(source, fields=["image:bytes", "n"]).findings]
        assert codes == [("bad_file", str(path))], words
    path.write_bytes(content)
    assert len(feedline.open(source, fields=["image:bytes", "n"])) == 8


def test_offsets_outside_of_the_values_are_errors_of_their_sample(tmp_path: Path) -> None:
    chunk = arrow_file([{"s": "abc"}, {"s": "defg"}, {"s": "hi"}])
    source = made_litdata.rows(tmp_path / "x", [chunk])
    path = source / "chunk-0-0.bin"
    offsets = struct.pack("<4i", 0, 3, 7, 9)
    path.write_bytes(path.read_bytes().replace(offsets, struct.pack("<4i", 0, 3, 70, 9)))
    dataset = feedline.open(source)
    assert dataset[0].s == "abc"
    with pytest.raises(feedline.DataError) as raised:
        dataset[1]
    error = raised.value
    assert (error.dataset, error.shard, error.key, error.record, error.stage) == (
        str(source),
        str(path),
        "chunk-0-0_bin/00000001",
        1,
        "format",
    )


def test_a_chunk_that_is_not_there_is_named(tmp_path: Path) -> None:
    chunk = arrow_file([{"a": 1}])
    source = made_litdata.rows(tmp_path / "x", [chunk, chunk])
    (source / "chunk-0-0.bin").unlink()
    with pytest.raises(feedline.StorageError, match=r"chunk-0-0\.bin"):
        feedline.open(source)
    assert [one.code for one in feedline.inspect(source).findings] == ["unreadable_file"]


def test_litdata_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    litdata = pytest.importorskip("litdata")
    from litdata.streaming.cache import Cache

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "x"
    folder.mkdir()
    cache = Cache(input_dir=str(folder), chunk_size=5)
    for i in range(12):
        cache[i] = row(i)
    cache.done()
    cache.merge()
    theirs = litdata.StreamingDataset(str(folder))
    assert [theirs[i] for i in range(12)] == [row(i) for i in range(12)]
    dataset = feedline.open(folder).collate("list", fields="l")
    assert [[plain(value) for value in dataset[i]] for i in range(12)] == [wanted(i) for i in range(12)]
    assert verifying.verify(folder).findings == []
