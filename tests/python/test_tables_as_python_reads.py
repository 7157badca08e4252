# SPDX-License-Identifier: Apache-2.0
"""Tables and JSON that Python's readers accept: compressed, with a byte-order mark, with NaN, with other columns."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import math
import pathlib
import pickle
import tarfile
from collections.abc import Callable

import numpy as np
import pytest
from made_png import Kind, png

import feedline


def _tar(path: pathlib.Path, members: dict[str, bytes]) -> str:
    with tarfile.open(path, "w") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return str(path)


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a": NaN}', '{"a": -Infinity}', '{"a": [Infinity, null]}'])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_json_members(tmp_path: pathlib.Path, mark: bytes, text: str) -> None:
    data = mark + text.encode()
    found = feedline.open(_tar(tmp_path / "s.tar", {"0.json": data}), fields=("json",))[0].json
    assert repr(found) == repr(json.loads(data))


def test_boxes_of_json_with_a_mark(tmp_path: pathlib.Path) -> None:
    source = _tar(tmp_path / "s.tar", {"0.json": b"\xef\xbb\xbf[[1, 2, 3, 4]]"})
    (row,) = feedline.open(source, fields=("json:boxes",))[0].json
    assert row.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf", b"\xef\xbb{}", b"{}\xef\xbb\xbf", b'{"a": Nan}', b'{"a": -nan}'])
def test_json_members_that_are_damaged(tmp_path: pathlib.Path, data: bytes) -> None:
    dataset = feedline.open(_tar(tmp_path / "s.tar", {"0.json": data}), fields=("json",))
    with pytest.raises(feedline.DataError) as caught:
        dataset[0]
    assert caught.value.key == "0"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_numbers_of_json_lines(tmp_path: pathlib.Path, mark: str) -> None:
    values = [0.5, math.nan, -math.inf, 2, -1e-3]
    path = tmp_path / "t.jsonl"
    path.write_text(mark + "".join(json.dumps({"x": value}) + "\n" for value in values), encoding="utf-8")
    found = [float(sample.x) for sample in feedline.open(path)]
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("number", ["01", "1.", "-", "1x", "Nan", "+1", "nan", "-nan", ".5", "1e", "Infinit"])
def test_lines_that_are_no_json(tmp_path: pathlib.Path, number: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"x": 1}\n{"x": ' + number + "}\n")
    with pytest.raises(feedline.DataError, match="line 2"):
        feedline.open(path, fields=("x",))


@pytest.mark.parametrize("word", ["NaN", "Infinity"])
def test_nan_among_integers(tmp_path: pathlib.Path, word: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"x": 1}\n{"x": ' + word + "}\n")
    with pytest.raises(feedline.DataError, match=rf"line 2 has '{word}' in the column 'x'"):
        feedline.open(path, fields=("x:value",))
    assert feedline.open(path)[0].x == 1.0
    path.write_text('{"x": 1}\n{"x": 1.5}\n')
    with pytest.raises(feedline.ConfigError, match="not integers"):
        feedline.open(path, fields=("x:value",))


def test_true_and_numbers_in_one_column(tmp_path: pathlib.Path) -> None:
    values = [True, 1, 2.5, False, [1], {"a": None}]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"x": value}) + "\n" for value in values))
    found = [sample.x for sample in feedline.open(path)]
    assert [(type(one), one) for one in found] == [(type(value), value) for value in values]


def test_quoted_empty_cells_are_missing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('x,text\n1,"a"\n"",b\n3,""\n')
    dataset = feedline.open(path)
    assert dataset[0].x == 1
    assert feedline.open(path, fields=("x",), missing="skip").schema["x"].dtype == "int64"
    for row, column in ((1, "x"), (2, "text")):
        with pytest.raises(feedline.DataError, match=rf"nothing in the column '{column}'"):
            dataset[row]


_COMPRESS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, "": bytes}
_TABLES = {
    "t.csv": b"path,label\na.png,cat\na.png,dog\n",
    "t.tsv": b"path\tlabel\na.png\tcat\na.png\tdog\n",
    "t.jsonl": b'{"path": "a.png", "label": "cat"}\n{"path": "a.png", "label": "dog"}\n',
    "T.NDJSON": b'{"path": "a.png", "label": "cat"}\n{"path": "a.png", "label": "dog"}\n',
}


@pytest.mark.parametrize("end", _COMPRESS)
@pytest.mark.parametrize("name", _TABLES)
def test_compressed_tables(tmp_path: pathlib.Path, name: str, end: str) -> None:
    (tmp_path / "a.png").write_bytes(png(Kind(width=8, height=6)))
    path = tmp_path / (name + end)
    path.write_bytes(_COMPRESS[end](_TABLES[name]))
    dataset = feedline.open(path)
    assert dataset.format == "table"
    samples = list(dataset.resize((6, 8)))
    assert [sample.label for sample in samples] == [0, 1]
    assert samples[0].image.shape == (3, 6, 8)
    assert dataset.inspect().samples == 2


def test_two_members_of_gzip_are_one_table(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": 1}\n') + gzip.compress(b'{"id": 2}\n'))
    assert [sample.id for sample in feedline.open(path)] == [1, 2]


@pytest.mark.parametrize("cut", [5, -9])
def test_compressed_tables_that_are_cut(tmp_path: pathlib.Path, cut: int) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"id\n1\n2\n" * 100)[:cut])
    with pytest.raises(feedline.DataError, match="gzip") as caught:
        feedline.open(path)
    assert caught.value.shard == str(path)


@pytest.mark.parametrize("plain", [b"\0\0\x08\x01\0\0\0\x02\x01\x07", b"some text\n" * 200])
def test_other_compressed_files_are_not_called_tars(tmp_path: pathlib.Path, plain: bytes) -> None:
    path = tmp_path / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(plain))
    with pytest.raises(feedline.ConfigError, match="compressed with gzip but is not a tar"):
        feedline.open(path)


def test_a_compressed_tar_of_any_name(tmp_path: pathlib.Path) -> None:
    plain = pathlib.Path(_tar(tmp_path / "s.tar", {"0.cls": b"7"})).read_bytes()
    path = tmp_path / "shard.gz"
    path.write_bytes(gzip.compress(plain))
    assert feedline.open(path, fields=("cls",))[0].cls == 7


def test_columns_of_tables_that_are_not_opened(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.png").write_bytes(png(Kind(width=8, height=6)))
    messages = [{"role": "user", "content": "What is it?"}]
    row = {"image": "a.png", "messages": messages, "x": 1.5, "n": 2, "caption": "c", "none": None}
    path = tmp_path / "t.jsonl"
    path.write_text((json.dumps(row) + "\n") * 2)
    dataset = feedline.open(path)
    specs = ["messages:json", "x:array", "n:value", "caption:text"]
    assert [one.spec for one in dataset.unopened] == [*specs, ""]
    notes = [finding.text for finding in dataset.inspect().findings]
    assert [one.name for one in dataset.unopened] == ["messages", "x", "n", "caption", "none"]
    for one in dataset.unopened:
        assert one.name in repr(dataset)
        assert one.name in dataset.explain()
        assert any(f"'{one.name}'" in note for note in notes)
    with pytest.raises(AttributeError, match="messages:json"):
        dataset.resize((6, 8))[0].messages  # noqa: B018
    opened = feedline.open(path, fields=("image", *specs)).resize((6, 8))
    assert opened[0].messages == messages
    assert [one.name for one in opened.unopened] == ["none"]
    assert [one.name for one in dataset.subset([0]).unopened] == [one.name for one in dataset.unopened]


def test_every_column_of_a_table_without_images(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text,score,id,empty\none,0.5,1,\ntwo,1.5,2,\n")
    dataset = feedline.open(path)
    assert [tuple(sample) for sample in dataset] == [("one", 0.5, 1), ("two", 1.5, 2)]
    assert [one.name for one in dataset.unopened] == ["empty"]


def test_members_of_tars_that_are_not_opened(tmp_path: pathlib.Path) -> None:
    image = png(Kind(width=8, height=6))
    source = _tar(tmp_path / "s.tar", {"0.png": image, "0.cls": b"1", "0.txt": b"a cat", "0.seg.npy": b""})
    dataset = feedline.open(source)
    assert [one.name for one in dataset.unopened] == ["seg.npy", "txt"]
    sample = dataset.resize((6, 8))[0]
    with pytest.raises(AttributeError, match=r"'txt'.*not opened"):
        sample.txt  # noqa: B018
    copy = pickle.loads(pickle.dumps(sample))
    assert copy.label == 1
    with pytest.raises(AttributeError, match=r"'seg\.npy'.*not opened"):
        copy.seg_npy  # noqa: B018
    assert feedline.open(source, fields=("png", "cls", "txt", "seg.npy:bytes")).unopened == ()
