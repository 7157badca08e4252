# SPDX-License-Identifier: Apache-2.0
"""Tables read at random whose decompressed blocks exceed the block cache."""

from __future__ import annotations

import re

import numpy as np
import pytest

import feedline
import feedline.testing

pa = pytest.importorskip("pyarrow", reason="pyarrow, which writes the tables, is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow, which writes the tables, is not installed")
ipc = pa.ipc

ROWS = 3000
FIELDS = ("number", "word:text", "text:text", "list", "maybe:text")


@pytest.fixture
def table() -> pa.Table:
    generator = np.random.default_rng(0)
    words = [f"word {i % 7}" for i in range(ROWS)]
    texts = [f"{i} " + "x" * int(generator.integers(0, 200)) for i in range(ROWS)]
    lists = pa.array([[i, i + 1, i + 2] for i in range(ROWS)], pa.list_(pa.int32()))
    maybe = [None if i % 5 == 0 else f"maybe {i}" for i in range(ROWS)]
    numbers = generator.standard_normal(ROWS).astype(np.float32)
    return pa.table({"number": numbers, "word": words, "text": texts, "list": lists, "maybe": maybe})


@pytest.fixture
def small_cache():
    feedline.testing.force(block_cache_bytes=30_000)
    yield
    feedline.testing.force()


def written(table: pa.Table, path: str, codec: str) -> None:
    if path.endswith(".parquet"):
        return pq.write_table(table, path, compression=codec, row_group_size=1000, data_page_size=1 << 14)
    with (
        pa.OSFile(path, "wb") as file,
        ipc.new_file(file, table.schema, options=ipc.IpcWriteOptions(compression=codec)) as writer,
    ):
        writer.write_table(table, max_chunksize=500)
    return None


@pytest.mark.parametrize(
    ("name", "codec"),
    [("t.parquet", "zstd"), ("t.parquet", "snappy"), ("t.parquet", "none"), ("t.arrow", "zstd"), ("t.arrow", "lz4")],
)
def test_values_are_the_same_in_every_epoch(name, codec, table, small_cache, tmp_path) -> None:
    path = str(tmp_path / name)
    written(table, path, codec)
    dataset = feedline.open(path, fields=FIELDS, missing="none")
    loader = dataset.loader(50, shuffle=True, seed=1, num_workers=2, output="numpy")
    for epoch in range(3):
        seen = []
        for batch in loader:
            rows = [int(text.split()[0]) for text in batch.text]
            seen += rows
            assert np.array_equal(batch.number, table["number"].to_numpy()[rows])
            for field in ("word", "text", "maybe"):
                assert list(getattr(batch, field)) == [table[field][row].as_py() for row in rows], (epoch, field)
            assert [list(value) for value in batch.list] == [table["list"][row].as_py() for row in rows]
        assert sorted(seen) == list(range(ROWS))
    if codec != "none":
        assert "stored in the cache folder" in loader.explain()


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_block_is_decompressed_at_most_twice(name, table, small_cache, tmp_path) -> None:
    path = str(tmp_path / name)
    written(table.select(["text"]), path, "zstd")
    loader = feedline.open(path, fields=("text:text",)).loader(50, shuffle=True, seed=1, num_workers=1)

    def decompressed() -> int:
        for _ in loader:
            pass
        found = re.search(r"([\d,]+) blocks decompressed", loader.explain())
        assert found is not None, loader.explain()
        return int(found[1].replace(",", ""))

    decompressed()
    counts = [decompressed() for _ in range(3)]
    assert counts[0] == counts[2], "later epochs decompress nothing"


def test_reading_dictionaries_in_order_stores_no_block(small_cache, tmp_path) -> None:
    path = tmp_path / "t.parquet"
    words = [f"word {i % 200} " + "x" * 50 for i in range(5000)]
    pq.write_table(pa.table({"word": words}), path, compression="zstd", row_group_size=500)
    loader = feedline.open(path, fields="word:text").loader(50, num_workers=1, output="numpy")
    assert [word for batch in loader for word in batch.word] == words
    assert "blocks decompressed" in loader.explain()
    assert "stored in the cache folder" not in loader.explain()


def test_a_full_cache_folder_is_reported_and_changes_no_value(table, small_cache, tmp_path, monkeypatch) -> None:
    path = str(tmp_path / "t.parquet")
    written(table, path, "zstd")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    loader = feedline.open(path, fields=("number", "text:text")).loader(50, shuffle=True, seed=1, output="numpy")
    for _ in range(2):
        values = np.concatenate([batch.number for batch in loader])
        assert np.array_equal(np.sort(values), np.sort(table["number"].to_numpy()))
    assert "because they cannot be stored" in loader.explain()


def test_blocks_use_a_quarter_of_the_memory_budget(table, tmp_path) -> None:
    path = str(tmp_path / "t.parquet")
    written(table, path, "zstd")
    dataset = feedline.open(path, fields=("text:text",))
    for budget, limit in (("400 MiB", 100), ("64 MiB", 32), (None, 256)):
        loader = dataset.loader(50, output="numpy", memory_budget=budget)
        next(iter(loader))
        found = re.search(r"in at most (\d+) MiB", loader.explain())
        assert found is not None, loader.explain()
        assert int(found[1]) <= limit
        assert budget is None or int(found[1]) == limit


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_numbers_that_exceed_memory_are_read_by_batch(codec, small_cache, tmp_path) -> None:
    numbers = {f"x{i}": np.arange(ROWS, dtype=np.float64) * (i + 1) for i in range(4)}
    path = str(tmp_path / "t.arrow")
    written(pa.table(numbers), path, codec)
    dataset = feedline.open(path)
    assert float(dataset[7].x1) == 14
    with dataset.loader(64, shuffle=True, seed=1, output="numpy") as loader:
        for _ in range(2):
            seen = []
            for batch in loader:
                assert np.array_equal(batch.x3, 4 * batch.x0)
                seen += list(batch.x0)
            assert np.array_equal(np.sort(seen), numbers["x0"])
        assert "blocks decompressed" in loader.explain()
