# SPDX-License-Identifier: Apache-2.0
"""MDS datasets written by MosaicML's library have the same samples as in that library."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest

import feedline
from feedline import packing

Original = Callable[..., Any]

ARRAYS = ("any", "typed", "fixed", "pil")
REALS = ("float16", "float32", "float64", "sf")
WHOLES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "int64", "whole", "si")


def test_datasets_of_streaming_read_as_it_reads_them(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    written = original("streaming", "write_mds.py", tmp_path / "out")
    assert len(written["rows"]) == 11
    for name, rows in written["rows"].items():
        specs = (*WHOLES, "u64:array", *REALS, "text", "raw", "tree", "sd", *ARRAYS[:-1], "pil:array")
        dataset = feedline.open(tmp_path / "out" / name, fields=specs).collate("list", fields=ARRAYS)
        assert (dataset.format, len(dataset)) == ("mds", 40)
        for i, row in enumerate(rows):
            one = dataset[i]._asdict()
            for column in WHOLES:
                assert int(one[column]) == row[column], (name, i, column)
            for column in (*REALS, "u64"):
                assert np.asarray(one[column]).item() == row[column], (name, i, column)
            for column in ARRAYS:
                value = one[column]
                assert [value.dtype.name, list(value.shape), value.tobytes().hex()] == row[column], (name, i, column)
            assert (one["text"], one["raw"].hex(), one["tree"], one["sd"]) == (
                row["text"], row["raw"], row["tree"], row["sd"],
            )  # fmt: skip
        findings = feedline.inspect(tmp_path / "out" / name).findings
        assert {finding.code for finding in findings if finding.severity != "note"} == set(), name


def test_shards_of_lines_read_as_streaming_reads_them(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    written = original("streaming", "write_mds_lines.py", tmp_path / "out")
    assert len(written) == 4 * 6
    for name, rows in written.items():
        dataset = feedline.open(tmp_path / "out" / name, fields=("n=a number", "real", "text", "ünï"))
        assert (dataset.format, len(dataset)) == ("mds", len(rows)) == ("mds", 40)
        for i, row in enumerate(rows):
            one = dataset[i]
            assert [int(one[0]), float(one[1]).hex(), *one[2:]] == [
                row["a number"], row["real"].hex(), row["text"], row["ünï"],
            ], (name, i)  # fmt: skip
        assert feedline.inspect(tmp_path / "out" / name).findings == [], name


@pytest.mark.parametrize("compression", [None, "gz", "bz2", "zstd:7"])
def test_streaming_reads_what_pack_writes(original: Original, tmp_path: Path, compression: str | None) -> None:
    photos = [made_data.encoded(made_data.photo(i, 40 + i, 30), "PNG") for i in range(9)]
    boxes = [np.arange(4 * i, dtype="float32").reshape(i, 4) for i in range(9)]
    members: list[tuple[str, bytes]] = []
    for i, photo in enumerate(photos):
        stored = io.BytesIO()
        np.save(stored, boxes[i])
        sample = {"png": photo, "cls": b"%d" % i, "json": b'{"i": [1, null]}', "txt": "größe".encode(), "bin": photo}
        members += [(f"a/{i}.{end}", data) for end, data in {**sample, "boxes.npy": stored.getvalue()}.items()]
    made_data.write_tar(tmp_path / "in.tar", members)
    packing.pack(
        tmp_path / "in.tar", tmp_path / "out", to="mds", samples_per_shard=4, compression=compression, keep_keys=True
    )
    rows = original("streaming", "read_mds.py", tmp_path / "out")
    assert [row["__key__"] for row in rows] == [f"a/{i}" for i in range(9)]
    for i, row in enumerate(rows):
        assert (row["label"], row["json"], row["txt"], row["bin"]) == (i, {"i": [1, None]}, "größe", photos[i].hex())
        assert row["boxes"] == ["float32", [i, 4], boxes[i].tobytes().hex()]
        pixels = feedline.decode_image(photos[i])
        assert row["image"] == ["uint8", list(pixels.shape), pixels.tobytes().hex()]
