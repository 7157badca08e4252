# SPDX-License-Identifier: Apache-2.0
"""Arrow and Parquet files, written from their specifications: the batches of the same photos in a folder, the layouts
of the `datasets` library, fields of every kind, damage that is named, behind a server, packed and verified."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_arrow
import made_parquet
import numpy as np
import pytest
from conftest import training
from range_server import serving

import feedline
from feedline import packing, verifying

Epoch = list[tuple[bytes, ...]]
Make = Callable[..., Path]
MAKERS: dict[str, Make] = {"arrow": made_arrow.of_folder, "parquet": made_parquet.of_folder}


@pytest.fixture(params=MAKERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(kind: str, folder: Path, tmp_path: Path) -> Path:
    """The photos of `folder` in three files, in the same order."""
    return MAKERS[kind](folder, tmp_path / "set", shards=3)


def files(table: Path) -> list[Path]:
    return sorted([*table.glob("*.arrow"), *table.glob("data/*.parquet")])


def epoch(dataset: feedline.Dataset, batch_size: int = 4, **options: Any) -> Epoch:
    with dataset.loader(batch_size, seed=3, output="numpy", **options) as loader:
        return [tuple(field.tobytes() for field in batch) for batch in loader]


def small(path: Path, kind: str, count: int = 25, lacking: int | None = None) -> Path:
    rows = [{"n": i, "text": None if i == lacking else f"text {i}"} for i in range(count)]
    path.write_bytes(made_arrow.stream(rows) if kind == "arrow" else made_parquet.file_of(rows))
    return path


def test_gives_the_batches_of_the_same_photos_in_a_folder(folder: Path, table: Path, kind: str) -> None:
    wanted = training(feedline.open(folder))
    opened = feedline.open(table)
    dataset = training(opened)
    assert (dataset.format, len(dataset), list(dataset.schema)) == (kind, 21, ["image", "label"])
    assert opened.classes == feedline.open(folder).classes
    for options in ({}, {"shuffle": True}, {"shuffle": "shards"}, {"shuffle": True, "num_workers": 3}):
        if options.get("shuffle") != "shards":
            assert epoch(dataset, **options) == epoch(wanted, **options), options
        else:
            assert sorted(epoch(dataset, 1, **options)) == sorted(epoch(wanted, 1)), options
    assert dataset[20].image.tobytes() == wanted[20].image.tobytes()


def test_sources_are_named_in_every_way(table: Path, kind: str, tmp_path: Path) -> None:
    wanted = epoch(training(feedline.open(table)))
    names = files(table)
    pattern = str(names[0]).replace("00000-of", "*-of")
    braces = str(names[0]).replace("00000-of", "{00000..00002}-of")
    nameless = []
    for i, path in enumerate(names):
        nameless.append(tmp_path / f"nameless{i}")
        nameless[-1].write_bytes(path.read_bytes())
    for source in (names, pattern, braces, "::".join(map(str, names)), nameless):
        dataset = feedline.open(source)
        assert (dataset.format, len(dataset)) == (kind, 21), source
        assert epoch(training(dataset)) == wanted, source


def test_splits_of_a_saved_dictionary(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "dict"
    for split in ("train", "test"):
        made_arrow.of_folder(folder, root / split)
    (root / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    with pytest.raises(feedline.ConfigError, match=r"several splits \(train, test\); open one of them"):
        feedline.open(root)
    assert len(feedline.open(root / "train")) == 21


def test_splits_and_missing_files_of_a_folder_of_parquet_files(folder: Path, tmp_path: Path) -> None:
    root = made_parquet.of_folder(folder, tmp_path / "set", shards=2)
    (root / "data" / "test.parquet").write_bytes((root / "data" / "train-00000-of-00002.parquet").read_bytes())
    with pytest.raises(feedline.ConfigError, match=r"several splits \(test, train\)"):
        feedline.open(root)
    assert len(feedline.open(root / "data" / "train-*.parquet")) == 21
    (root / "data" / "test.parquet").unlink()
    (root / "data" / "train-00001-of-00002.parquet").unlink()
    with pytest.raises(feedline.DataError, match="has 1 files, but their names specify 2"):
        feedline.open(root)


def test_columns_of_every_kind(tmp_path: Path) -> None:
    rows = [
        {"n": -i, "ids": [i, 2**40], "boxes": [[i, 1, 12, 3], [4, 5, 6, 7]], "in": {"raw": b"\0r", "text": "t" * i}}
        for i in range(7)
    ]
    path = tmp_path / "x.arrow"
    path.write_bytes(made_arrow.stream(rows, per_batch=3))
    fields = ("n", "ids", "boxes:boxes", "raw=in.raw", "in.text")
    (batch,) = feedline.open(path, fields=fields).loader(7, output="numpy")
    np.testing.assert_array_equal(batch[0], -np.arange(7))
    np.testing.assert_array_equal(batch[1], [[i, 2**40] for i in range(7)])
    assert [one.tolist() for one in batch[2]] == [[[i, 1, 12, 3], [4, 5, 6, 7]] for i in range(7)]
    assert (batch[3], batch[4]) == ([b"\0r"] * 7, ["t" * i for i in range(7)])
    assert list(feedline.open(path).schema) == ["n", "ids", "boxes", "in.raw", "in.text"]


@pytest.mark.parametrize("missing, left", [("skip", 24), ("none", 25)])
def test_rows_without_a_value(kind: str, tmp_path: Path, missing: str, left: int) -> None:
    path = small(tmp_path / f"x.{kind}", kind, lacking=7)
    assert feedline.open(path)[6].text == "text 6"
    with pytest.raises(feedline.DataError, match="no value in the column 'text'") as caught:
        feedline.open(path)[7]
    assert (caught.value.record, caught.value.key, caught.value.shard) == (7, "x/00000007", str(path))
    dataset = feedline.open(path, missing=missing)
    assert len(dataset) == left
    assert [one for batch in dataset.loader(25, output="numpy") for one in batch.text][6:9] == (
        ["text 6", "text 8", "text 9"] if missing == "skip" else ["text 6", None, "text 8"]
    )


def test_damage_is_named_and_left_out_if_the_loader_allows_it(tmp_path: Path) -> None:
    """Of Parquet: a page has a checksum."""
    path = small(tmp_path / "x.parquet", "parquet")
    content = bytearray(path.read_bytes())
    content[content.index(b"text 13")] ^= 1
    path.write_bytes(content)
    dataset = feedline.open(path)
    with pytest.raises(feedline.DataError, match="checksum is wrong") as caught:
        list(dataset.loader(10, output="numpy"))
    assert caught.value.shard == str(path) and caught.value.stage == "format" and caught.value.offset
    with dataset.loader(10, output="numpy", on_error="skip", error_budget=4) as loader:
        seen = [int(n) for batch in loader for n in batch.n]
    assert sorted(seen) == [i for i in range(25) if i not in range(10, 14)]
    assert [one.code for one in feedline.inspect(path).findings] == ["bad_value"] * 4


def test_what_ends_a_file_is_an_error_of_opening(kind: str, tmp_path: Path) -> None:
    path = small(tmp_path / f"x.{kind}", kind)
    whole = path.read_bytes()
    for cut in (9, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(feedline.DataError, match=r"damaged|cut|too short") as caught:
            feedline.open(path)
        assert caught.value.shard == str(path)
        assert [found.code for found in feedline.inspect(path).findings] == ["bad_file"]


def test_a_schema_that_changes_between_files_is_named(kind: str, tmp_path: Path) -> None:
    small(tmp_path / f"0.{kind}", kind)
    for other, says in (
        ("n", "the column 'text' holds int64 in this file, but text in others"),
        ("x", "no column 'text'"),
    ):
        rows = [{"n": 1, "text" if other == "n" else other: 2}]
        path = tmp_path / f"1.{kind}"
        path.write_bytes(made_arrow.stream(rows) if kind == "arrow" else made_parquet.file_of(rows))
        with pytest.raises(feedline.ConfigError, match=says) as caught:
            feedline.open(tmp_path / f"{{0..1}}.{kind}", fields=("n", "text"))
        assert caught.value.shard == str(path)
        assert len(feedline.open(tmp_path / f"{{0..1}}.{kind}", fields="n")) == 26


def test_what_many_reads_of_an_opening_brought_is_kept_for_that_version(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    path = small(tmp_path / "data" / f"x.{kind}", kind, 200)
    assert len(feedline.open(path)) == 200
    (index_path,) = (tmp_path / "cache").rglob("*.feedline-index")
    assert os.listdir(tmp_path / "data") == [path.name], "whoever reads the folder as a whole would take it for data"
    stat, content = path.stat(), bytearray(path.read_bytes())
    middle = content.index(b"text 101")
    begin = content.rindex(b"\xff" * 4, 0, middle) if kind == "arrow" else middle - 400
    content[begin : middle - 4] = b"\xff" * (middle - 4 - begin)  # of what says where values are
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert feedline.open(path)[3].text == "text 3", "where all is, was not read again"
    os.utime(path)
    with pytest.raises(feedline.DataError, match="damaged"):
        feedline.open(path)
    index_path.unlink()
    small(path, kind, 5)
    assert len(feedline.open(path)) == 5
    assert not list((tmp_path / "cache").rglob("*.feedline-index")), "a few reads are as fast"


def test_compressed_pages(folder: Path, tmp_path: Path) -> None:
    plain = made_parquet.of_folder(folder, tmp_path / "plain")
    packed = made_parquet.of_folder(folder, tmp_path / "packed", codec=2, pack=gzip.compress)
    assert epoch(training(feedline.open(packed)), shuffle=True) == epoch(training(feedline.open(plain)), shuffle=True)


def test_from_a_server_the_batches_are_the_same(table: Path) -> None:
    wanted = epoch(training(feedline.open(table)), shuffle=True)
    names = files(table)
    with serving(names[0].parent) as server:
        source = server.url(names[0].name.replace("00000-of", "{00000..00002}-of"))
        assert epoch(training(feedline.open(source)), shuffle=True) == wanted
        sizes = {path.name: path.stat().st_size for path in names}
        assert all(path.strip("/") in sizes for path, _ in server.requests)


def test_through_a_cache_folder_and_a_pixel_cache(table: Path, tmp_path: Path) -> None:
    wanted = epoch(training(feedline.open(table)))
    names = files(table)
    with serving(names[0].parent) as server:
        urls = [server.url(path.name) for path in names]
        assert epoch(training(feedline.open(urls, cache=tmp_path / "node"))) == wanted


def test_errors_of_choosing_fields_come_before_any_sample(kind: str, tmp_path: Path) -> None:
    path = small(tmp_path / f"x.{kind}", kind)
    for fields, says in (
        ("y", r"no column for the field 'y' .* the columns are n \(int64\), text \(text\)"),
        ("n:image", "'n' cannot be of kind image"),
        (("n", "n=text"), "two fields are called 'n'"),
    ):
        with pytest.raises(feedline.ConfigError, match=says):
            feedline.open(path, fields=fields)


def test_inspect_tells_columns_that_no_one_reads(table: Path, kind: str) -> None:
    found = feedline.inspect(table)
    assert (found.format, found.samples, found.shards, list(found.fields)) == (kind, 21, 3, ["image", "label"])
    assert found.extensions == {"image": 21, "label": 21}
    assert not found.findings
    (finding,) = feedline.inspect(table, fields="label").findings
    assert (finding.code, finding.severity) == ("unread_column", "note") and "'image'" in finding.text


def test_packs_to_tars_of_the_same_batches(table: Path, tmp_path: Path) -> None:
    report = packing.pack(table, tmp_path / "out", samples_per_shard=10)
    assert (report.samples, report.skipped) == (21, [])
    packed = feedline.open(tmp_path / "out" / "{000000..000002}.tar")
    assert epoch(training(packed), shuffle=True) == epoch(training(feedline.open(table)), shuffle=True)
    assert packed.key(20).endswith("-of-00003/00000006")


def test_verify_proves_and_names_damage(folder: Path, table: Path, kind: str) -> None:
    source = files(table)
    verified = verifying.verify(source, decode=True)
    assert (verified.samples, verified.format, [one.code for one in verified.findings]) == (21, kind, [])
    content = bytearray(source[1].read_bytes())
    content[len(content) // 2] ^= 1
    source[1].write_bytes(content)
    if kind == "parquet":  # which has checksums
        found = {(one.code, one.about["shard"]) for one in verifying.verify(source).findings}
        assert ("bad_value", str(source[1])) in found
    source[1].write_bytes(content[:-1])
    found = {(one.code, one.about["shard"]) for one in verifying.verify(source).findings}
    assert ("bad_file", str(source[1])) in found
