# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow over HTTP: the number of requests for opening, and the bytes fetched per byte of the file."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_parquet
import numpy as np
import pytest
from range_server import RangeServer, serving

import feedline
import feedline.testing

_ROWS, _BYTES = 240, 20_000
_FILES: dict[str, dict[str, Any]] = {
    "indexed": {"indexed": True},
    "not indexed": {},
    "gzip": {"codec": 2, "pack": gzip.compress},
}


def rows(count: int = _ROWS, each: int = _BYTES) -> list[dict[str, Any]]:
    generator = np.random.default_rng(0)
    return [{"data": generator.bytes(each), "label": i} for i in range(count)]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    with serving(tmp_path / "data") as running:
        yield running
    feedline.testing.force()


def fetched(requests: list[tuple[str, str]]) -> int:
    ranges = [re.fullmatch(r"bytes=(\d+)-(\d+)", asked) for _, asked in requests]
    return sum(int(found[2]) - int(found[1]) + 1 for found in ranges if found)


def opened(server: RangeServer, name: str) -> feedline.Dataset:
    return feedline.open(server.url(name), fields=("data:bytes", "label"))


def labels(dataset: feedline.Dataset, expected: list[dict[str, Any]], epochs: int = 1, **options: Any) -> list[int]:
    found = []
    with dataset.loader(8, output="numpy", num_workers=2, seed=3, **options) as loader:
        for _ in range(epochs):
            for batch in loader:
                for data, label in zip(batch.data, batch.label, strict=True):
                    assert bytes(data) == expected[int(label)]["data"]
                    found.append(int(label))
    return found


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "not indexed"])
def test_opening_needs_few_requests_for_many_row_groups(server: RangeServer, indexed: bool) -> None:
    groups = 128
    data = made_parquet.file_of(rows(groups * 2, 9000), per_group=2, per_page=1, indexed=indexed)
    (server.root / "x.parquet").write_bytes(data)
    dataset = opened(server, "x.parquet")
    assert len(dataset) == groups * 2
    assert len(server.requests) <= groups / 64 + 1, server.requests
    assert fetched(server.requests) < 0.1 * len(data)


@pytest.mark.parametrize("file", list(_FILES))
@pytest.mark.parametrize("shuffle", [False, True], ids=["in order", "shuffled"])
def test_bytes_are_fetched_once_for_all_rows(server: RangeServer, file: str, shuffle: bool) -> None:
    expected = rows()
    data = made_parquet.file_of(expected, per_group=10, per_page=4, **_FILES[file])
    (server.root / "x.parquet").write_bytes(data)
    found = labels(opened(server, "x.parquet"), expected, epochs=2, shuffle=shuffle)
    assert sorted(found) == sorted(2 * list(range(_ROWS)))
    assert fetched(server.requests) <= 1.5 * len(data)  # each thread may read its first block itself


@pytest.mark.parametrize("file", list(_FILES))
def test_shuffled_bytes_that_exceed_the_cache_are_stored(server: RangeServer, file: str) -> None:
    expected = rows()
    data = made_parquet.file_of(expected, per_group=40, per_page=7, **_FILES[file])
    (server.root / "x.parquet").write_bytes(data)
    feedline.testing.force(block_cache_bytes=3 * 40 * _BYTES // 2)
    dataset = opened(server, "x.parquet")
    labels(dataset, expected, shuffle=True)
    assert fetched(server.requests) <= 2.5 * len(data)
    before = len(server.requests)
    labels(dataset, expected, shuffle=True)
    assert fetched(server.requests[before:]) <= 0.5 * len(data)


def test_a_damaged_page_fails_only_its_rows(server: RangeServer) -> None:
    expected = rows(40)
    data = bytearray(made_parquet.file_of(expected, per_group=20, per_page=5))
    at = data.index(expected[7]["data"])
    data[at + 100] ^= 1
    (server.root / "x.parquet").write_bytes(data)
    with opened(server, "x.parquet").loader(8, output="numpy", on_error="skip", num_workers=2) as loader:
        found = sorted(int(label) for batch in loader for label in batch.label)
        assert found == [i for i in range(40) if i // 5 != 1]
        assert {error.record for error in loader.errors} == {5, 6, 7, 8, 9}
        assert "checksum" in str(loader.errors[0])


def test_a_chunk_with_other_rows_than_its_group_is_an_error(server: RangeServer) -> None:
    expected = rows(40)
    data = made_parquet.file_of(expected, per_group=20, per_page=5)
    page = made_parquet._page([row["data"] for row in expected[5:10]], None)
    assert page in data
    header = page[: page.index(b"\x02\x01") - 4]
    shorter = header.replace(made_parquet.varint(10), made_parquet.varint(8))  # the page's number of values
    assert len(shorter) == len(header) and shorter != header
    (server.root / "x.parquet").write_bytes(data.replace(header, shorter, 1))
    dataset = opened(server, "x.parquet")
    assert int(dataset[30].label) == 30
    with pytest.raises(feedline.DataError, match=r"rows of 20|different number"):
        dataset[6]
