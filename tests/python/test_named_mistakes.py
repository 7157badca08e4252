# SPDX-License-Identifier: Apache-2.0
"""Files and folders that are mistaken for others: they open, or the error names their kind and the remedy."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_data
import made_png
import pytest
from range_server import serving

import feedline
from feedline.pack import listing

PNG = made_png.png(made_png.Kind())


def rows(source: object, **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(sample) for sample in feedline.open(source, **options)]  # type: ignore[arg-type]


def write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_flat_folder_of_several_kinds_of_images(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.png", "c.JPG"):
        write(tmp_path / name, PNG)
    with pytest.raises(feedline.ConfigError, match=r'fields="image=\{key\}:image".*\.JPG: 1, \.jpg: 1, \.png: 1'):
        feedline.open(tmp_path)
    assert len(rows(tmp_path, fields="image={key}:image")) == 3
    write(tmp_path / "README.md", "text")
    with pytest.raises(feedline.ConfigError, match=r'"\{key\}\.jpg": 1, fields="\{key\}\.png": 1'):
        feedline.open(tmp_path)


def test_images_that_img2dataset_wrote_as_files(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for key in ("000000000", "000000001"):
        write(tmp_path / "00000" / f"{key}.png", PNG)
        write(tmp_path / "00000" / f"{key}.txt", f"caption {key}")
    pq.write_table(pa.table({"url": ["u", "v"], "key": ["000000000", "000000001"]}), tmp_path / "00000.parquet")
    with pytest.raises(feedline.ConfigError, match=r'"image=\{key\}\.png", "caption=\{key\}\.txt"'):
        feedline.open(tmp_path)
    found = feedline.open(tmp_path, fields=("image={key}.png", "caption={key}.txt"))
    assert [sample.caption for sample in found] == ["caption 000000000", "caption 000000001"]
    assert len(feedline.open(tmp_path, format="parquet")) == 2


@pytest.mark.parametrize("fields", ["nulls", "ragged"])
@pytest.mark.parametrize("end", ["parquet", "arrow"])
def test_lists_that_are_not_arrays_name_their_field(tmp_path: Path, fields: str, end: str) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"nulls": [[1, 2], [3, None]], "ragged": [[[1], [2]], [[1], [2, 3]]]})
    path = tmp_path / f"t.{end}"
    if end == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    dataset = feedline.open(path, fields=(f"x={fields}",))
    with pytest.raises(feedline.DataError, match=f"field 'x': the column '{fields}'") as caught:
        dataset[1]
    assert caught.value.record == 1 and caught.value.stage == "format"


def test_lists_of_no_elements_that_pyarrow_cannot_read(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"x": pa.array([[], []], pa.list_(pa.int64(), 0))}), tmp_path / "t.parquet")
    with pytest.raises(feedline.DataError, match=r"field 'x'.*fixed_size_list with 0 elements"):
        list(feedline.open(tmp_path / "t.parquet"))


_COMPRESS: dict[str, Callable[[bytes], bytes]] = {"xz": lzma.compress, "bzip2": bz2.compress, "gzip": gzip.compress}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("t.csv.xz", "xz"),
        ("t.xz", "xz"),
        ("t.tar.xz", "xz"),
        ("t.tar.bz2", "bzip2"),
        ("t.tar", "bzip2"),
        ("t.data", "gzip"),
        ("t.csv", "gzip"),
        ("t.jsonl", "xz"),
        ("t.json", "gzip"),
        ("t.parquet", "gzip"),
        ("t.arrow", "xz"),
        ("t.tfrecord", "bzip2"),
    ],
)
def test_compressed_data_is_named(tmp_path: Path, name: str, kind: str) -> None:
    path = write(tmp_path / name, _COMPRESS[kind](b"a,b\n1,2\n"))
    with pytest.raises((feedline.ConfigError, feedline.DataError), match=kind) as caught:
        feedline.open(path)
    assert "compress" in str(caught.value) or "unpack" in str(caught.value)


def test_a_zip_archive_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
    with pytest.raises(feedline.ConfigError, match=r"zip data.*unpack"):
        feedline.open(tmp_path / "t.zip")


LINES = '{"a": 1, "t": "x"}\n{"a": 2, "t": "y"}\n'
ARRAY = '[{"a": 1, "t": "x"},\n {"a": 2, "t": "y"}]'


@pytest.mark.parametrize("text", [LINES, ARRAY, "\ufeff" + LINES, json.dumps(json.loads(ARRAY), indent=2)])
def test_tables_in_json_files(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "t.json", text)
    assert rows(path) == [(1, "x"), (2, "y")]
    assert rows(write(tmp_path / "t.json.gz", gzip.compress(text.encode()))) == [(1, "x"), (2, "y")]
    write(tmp_path / "u.json", LINES)
    assert len(rows(str(tmp_path / "*.json"))) == 4


def test_json_that_is_not_a_table(tmp_path: Path) -> None:
    with pytest.raises(feedline.DataError, match="one object per line, or one array of objects"):
        feedline.open(write(tmp_path / "t.json", '{"data": [{"a": 1}]}'))
    with pytest.raises(feedline.DataError, match="line 2 is not a valid JSON object: expected a value at character 7"):
        feedline.open(write(tmp_path / "t.jsonl", '{"a": 1}\n{"a": x}\n'))


def test_other_encodings_and_line_ends_of_csv(tmp_path: Path) -> None:
    assert rows(write(tmp_path / "t.csv", "a,t\r1,x\r2,y\r")) == [(1, "x"), (2, "y")]
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        with pytest.raises(feedline.DataError, match="not UTF-8 but UTF-16"):
            feedline.open(write(tmp_path / "u.csv", "a,t\n1,x\n".encode(encoding)))


def test_masks_of_images_without_a_size(tmp_path: Path) -> None:
    write(tmp_path / "a.png", PNG)
    image = {"id": 1, "file_name": "a.png", "width": -1, "height": 8}
    path = write(tmp_path / "c.json", json.dumps({"images": [image], "annotations": [], "categories": []}))
    with pytest.raises(feedline.DataError, match=r"no valid width and height.*-1"):
        feedline.open(path, fields=("image", "masks"))[0]


@pytest.mark.parametrize("end", ["bmp", "gif", "tif", "tiff", "ppm", "png"])
def test_image_members_of_tars(tmp_path: Path, end: str) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (6, 5), (10, 20, 30)).save(tmp_path / f"a.{end}")
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        tar.add(tmp_path / f"a.{end}", f"a.{end}")
    dataset = feedline.open(tmp_path / "t.tar", fields=(end,))
    assert dataset.schema[end].shape == (3, -1, -1) and dataset[0][0].shape == (3, 5, 6)


def test_remote_folders_of_shards_open_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "data"
    for number in range(2):
        write(tmp_path / f"{number}.txt", str(number))
        root.mkdir(exist_ok=True)
        with tarfile.open(root / f"{number}.tar", "w") as tar:
            tar.add(tmp_path / f"{number}.txt", f"{number}.txt")
    listing.write_listing(root)
    with serving(root) as server:
        for options in ({}, {"format": "tar"}):
            assert rows(server.url(""), fields="txt", **options) == [("0",), ("1",)]
        assert feedline.inspect(server.url("")).format == "tar"


@pytest.mark.parametrize(
    ("name", "braces"),
    [
        ("shard-%03d.tar", r"shard-\{000..146\}.tar"),
        ("shard-%d.tar", r"shard-\{0..146\}.tar"),
        ("a/shard_%6d.tar", r"shard_\{000000..000146\}.tar"),
    ],
)
def test_numbers_in_the_form_of_printf(name: str, braces: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(feedline.ConfigError, match=f"which is not expanded; write .* in braces: .*{braces}"):
        feedline.open(name)
    folder = tmp_path / "50%d/train/apple"  # a name that only looks similar
    folder.mkdir(parents=True)
    (folder / "a.jpg").write_bytes(made_data.encoded(made_data.photo(1, 8, 8)))
    assert len(feedline.open("50%d/train")) == 1
    with pytest.raises(feedline.StorageError):
        feedline.open("50%d/train/{0..1}.tar")
