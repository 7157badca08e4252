# SPDX-License-Identifier: Apache-2.0
"""Databases written by liblmdb have the same entries as in liblmdb."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import feedline
from feedline import packing

Original = Callable[..., Any]


def test_databases_of_liblmdb_read_as_it_reads_them(original: Original, tmp_path: Path) -> None:
    for name, entries in original("lmdb", "write_lmdb.py", tmp_path).items():
        dataset = feedline.open(tmp_path / name, fields=("value={key}:bytes",), format="lmdb")
        assert len(dataset) == len(entries), name
        for i, (key, size, checksum) in enumerate(entries):
            value = dataset[i].value
            assert (len(value), zlib.crc32(value)) == (size, checksum), (name, i, key)
    for name, says in (("duplicates", "MDB_DUPSORT"), ("several", "'left', 'right'")):
        with pytest.raises(feedline.DataError, match=says):
            feedline.open(tmp_path / name, fields=("{key}:bytes",))


def test_liblmdb_reads_packed_databases(original: Original, folder: Path, tmp_path: Path) -> None:
    packing.pack(folder, tmp_path / "out", to="lmdb")
    source = feedline.open(folder)
    wanted = []
    for i in range(len(source)):
        key = source.key(i).removesuffix(".jpg")
        wanted += [
            [f"{key}.image", source.encoded(i).hex()],
            [f"{key}.label", str(int(source[i].label)).encode().hex()],
        ]
    assert original("lmdb", "read_lmdb.py", tmp_path / "out/000000.lmdb") == wanted
