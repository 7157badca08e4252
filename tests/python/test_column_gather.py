# SPDX-License-Identifier: Apache-2.0
"""Numbers of Arrow and Parquet tables that are copied column by column: the values that pyarrow wrote, in the order,
with the errors and with the state of single rows; several columns as one matrix; nulls as NaN and as flags."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline
import feedline.testing

pa = pytest.importorskip("pyarrow", reason="pyarrow, which writes the tables, is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow, which writes the tables, is not installed")

ROWS = 1000
RNG = np.random.default_rng(7)
NUMBERS: dict[str, Any] = {
    "row": np.arange(ROWS, dtype=np.int32),
    "f4": RNG.standard_normal(ROWS).astype(np.float32),
    "f8": RNG.standard_normal(ROWS),
    "f2": RNG.standard_normal(ROWS).astype(np.float16),
    "u1": RNG.integers(0, 255, ROWS).astype(np.uint8),
    "i8": RNG.integers(-(2**62), 2**62, ROWS),
    "u8": RNG.integers(0, 2**63, ROWS, dtype=np.uint64),
    "b": RNG.integers(0, 2, ROWS).astype(bool),
    "few": RNG.integers(0, 5, ROWS).astype(np.float32),
    "list": RNG.standard_normal((ROWS, 3)).astype(np.float32),
}
EXACT = [f"{name}:array" for name in NUMBERS]


def written(path: Path, columns: dict[str, Any], compression: str | None = "zstd") -> Path:
    """Small pages and batches, so that each batch of a loader needs several of them."""
    arrays = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
        if isinstance(values, np.ndarray) and values.ndim == 2
        else pa.array(values)
        for name, values in columns.items()
    }
    table = pa.table(arrays)
    if path.suffix == ".parquet":
        pq.write_table(
            table, path, compression=compression or "none", row_group_size=300, data_page_size=256,
            write_batch_size=32, use_dictionary=["few"] if "few" in columns else False, write_page_checksum=True,
        )  # fmt: skip
    else:
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as out:
            out.write_table(table, max_chunksize=70)
    return path


@pytest.fixture(params=["x.parquet", "x.arrow", "plain.parquet", "plain.arrow"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def write(name: str, tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    return lambda columns: written(tmp_path / name, columns, None if name.startswith("plain") else "zstd")


def epoch(dataset: feedline.Dataset, batch_size: int, **options: Any) -> list[np.ndarray[Any, Any]]:
    """All rows of an epoch, by field."""
    with dataset.loader(batch_size, **({"seed": 5, "output": "numpy"} | options)) as loader:
        batches = [tuple(np.array(field) for field in batch) for batch in loader]
    return [np.concatenate(fields) for fields in zip(*batches, strict=True)]


def same(a: list[np.ndarray[Any, Any]], b: list[np.ndarray[Any, Any]]) -> bool:
    return [x.tobytes() for x in a] == [x.tobytes() for x in b] and [x.dtype for x in a] == [x.dtype for x in b]


def gathered(dataset: feedline.Dataset) -> int:
    """The number of rows that were copied column by column."""
    found = re.search(r"([\d,]+) rows were copied column by column", dataset.explain())
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.parametrize("batch_size", [7, 64, 999, 1024])
def test_gives_the_numbers_of_the_file(write: Callable[..., Path], batch_size: int) -> None:
    dataset = feedline.open(write(NUMBERS), fields=EXACT)
    for options in ({}, {"shuffle": True}, {"shuffle": True, "num_workers": 3, "in_order": False}):
        fields = epoch(dataset, batch_size, **options)
        order = fields[0]
        assert sorted(order.tolist()) == list(range(ROWS))
        assert (order.tolist() == list(range(ROWS))) == (not options.get("shuffle"))
        for (name, values), field in zip(NUMBERS.items(), fields, strict=True):
            assert field.dtype == values.dtype, name
            np.testing.assert_array_equal(field, values[order], err_msg=name)
    assert gathered(dataset) > 0


def test_gives_the_rows_that_are_read_one_by_one(write: Callable[..., Path]) -> None:
    """A batch of one row is read by itself."""
    specs = (*EXACT, "label=i8", "m=f4+f8+u1+i8+b+f2", "whole=u1:nan", "flag=f4:valid")
    dataset = feedline.open(write(NUMBERS), fields=specs)
    one_by_one = epoch(dataset, 1)
    assert gathered(dataset) == 0
    for options in ({"shuffle": True}, {"shuffle": True, "world_size": 3, "rank": 1}, {"shuffle": "shards"}):
        fields = epoch(dataset, 32, **options)
        assert same(fields, [field[fields[0]] for field in one_by_one]), options
    assert gathered(dataset) > 0
    some = dataset.subset(range(900, 100, -3))
    assert same(epoch(some, 64, shuffle=True), epoch(some, 1, shuffle=True))
    mixed = feedline.mix([dataset, dataset.subset([5, 6, 7])], weights=[1, 2])
    assert same(epoch(mixed, 48, shuffle=True), epoch(mixed, 1, shuffle=True))
    sample = dataset[77]
    for name, value, field in zip(dataset.schema, sample, one_by_one, strict=True):
        np.testing.assert_array_equal(value, field[77], err_msg=name)


def test_resumes_in_the_middle_of_an_epoch(write: Callable[..., Path]) -> None:
    dataset = feedline.open(write(NUMBERS), fields=("row", "f4"))
    whole = epoch(dataset, 64, shuffle=True)
    with dataset.loader(64, seed=5, shuffle=True, output="numpy") as loader:
        batches = iter(loader)
        for _ in range(5):
            next(batches)
        state = loader.state_dict()
    with dataset.loader(64, seed=5, shuffle=True, output="numpy") as loader:
        loader.load_state_dict(state)
        rest = [
            np.concatenate(fields) for fields in zip(*(tuple(map(np.array, batch)) for batch in loader), strict=True)
        ]
    assert same(rest, [field[5 * 64 :] for field in whole])


def test_columns_of_a_matrix_are_float32(write: Callable[..., Path]) -> None:
    dataset = feedline.open(write(NUMBERS), fields=("row", "x=f4+f8+u1+i8+u8+b+f2"))
    assert str(dataset.schema["x"].dtype) == "float32" and tuple(dataset.schema["x"].shape) == (7,)
    row, x = epoch(dataset, 128, shuffle=True)
    wanted = np.stack([NUMBERS[name].astype(np.float32) for name in ("f4", "f8", "u1", "i8", "u8", "b", "f2")], 1)
    np.testing.assert_array_equal(x, wanted[row])


def test_a_column_may_have_a_plus_in_its_name(write: Callable[..., Path]) -> None:
    path = write({"a": [1.0], "b": [2.0], "a+b": [7.0]})
    assert feedline.open(path, fields=("a+b",))[0][0] == 7
    assert feedline.open(path, fields=("x=a+b;b",))[0].x == 7
    assert feedline.open(path, fields=("x=a+c;b+a",))[0].x.tolist() == [2, 1]


NULLABLE = [None if row % 7 == 3 else row for row in range(ROWS)]


def test_nulls_are_nan_and_flags_if_the_fields_ask_for_them(write: Callable[..., Path]) -> None:
    path = write({"row": NUMBERS["row"], "f": pa.array(NULLABLE, pa.float32()), "i": pa.array(NULLABLE, pa.int16())})
    fields = ("row", "f:nan", "i:nan", "seen=i:valid", "x=i+row+f:nan", "all=i+row+f:valid")
    dataset = feedline.open(path, fields=fields)
    row, f, i, seen, x, flags = epoch(dataset, 100, shuffle=True)
    there = row % 7 != 3
    assert (f.dtype, i.dtype, seen.dtype, x.dtype, flags.dtype) == ("f4", "f8", "?", "f4", "?")
    np.testing.assert_array_equal(f, np.where(there, row, np.nan).astype(np.float32))
    np.testing.assert_array_equal(i, np.where(there, row, np.nan))
    np.testing.assert_array_equal(seen, there)
    np.testing.assert_array_equal(x, np.stack([i, row, f], 1).astype(np.float32))
    np.testing.assert_array_equal(flags, np.stack([there, there | True, there], 1))
    assert gathered(dataset) >= ROWS  # the next epoch has begun
    assert same(epoch(dataset, 1, shuffle=True), [row, f, i, seen, x, flags])
    assert len(feedline.open(path, fields=fields, missing="skip")) == ROWS


def test_a_null_is_an_error_of_its_row_by_default(write: Callable[..., Path]) -> None:
    path = write({"row": NUMBERS["row"], "f": pa.array(NULLABLE, pa.float32()), "g": NUMBERS["f4"]})
    for fields, column in ((("row", "f"), "f"), (("row", "m=g+f"), "f")):
        dataset = feedline.open(path, fields=fields)
        with dataset.loader(50, output="numpy") as loader, pytest.raises(feedline.DataError) as caught:
            next(iter(loader))
        assert (caught.value.record, caught.value.key) == (3, f"{path.stem}/00000003")
        assert f"the row has no value in the column '{column}'" in str(caught.value)
        options = {"shuffle": True, "on_error": "skip", "error_budget": ROWS}
        assert same(epoch(dataset, 50, **options), epoch(dataset, 1, **options))
        assert sorted(epoch(dataset, 50, **options)[0].tolist()) == [row for row in NULLABLE if row is not None]
        options["on_error"] = "replace"
        assert same(epoch(dataset, 50, **options), epoch(dataset, 1, **options))
    assert len(feedline.open(path, fields=("row", "f"), missing="skip")) == len(
        [1 for one in NULLABLE if one is not None]
    )


def test_a_damaged_page_is_named_by_its_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", {"row": NUMBERS["row"], "f4": NUMBERS["f4"]}, None)
    content = bytearray(path.read_bytes())
    content[content.index(NUMBERS["f4"][400:416].tobytes())] ^= 1
    path.write_bytes(content)
    dataset = feedline.open(path, fields=("row", "f4"))
    errors = []
    for batch_size in (1, 100):
        with dataset.loader(
            batch_size, seed=5, shuffle=True, output="numpy", on_error="skip", error_budget=ROWS
        ) as loader:
            rows = [row for batch in loader for row in batch.row.tolist()]
            errors.append(sorted((bad.record, bad.key, bad.offset, bad.message) for bad in loader.errors))
        assert len(rows) + len(errors[-1]) == ROWS
        assert set(rows).isdisjoint(record for record, *_ in errors[-1])
    assert errors[0] == errors[1]
    assert 400 in [record for record, *_ in errors[0]] and len(errors[0]) < 200
    assert "the page's checksum is wrong" in errors[0][0][3] and "column 'f4'" in errors[0][0][3]


def test_lists_of_other_lengths_are_errors_of_their_rows(write: Callable[..., Path]) -> None:
    lists = pa.array([[1.0] if row == 501 else [row, row + 1.0] for row in range(ROWS)], pa.list_(pa.float32()))
    dataset = feedline.open(write({"row": NUMBERS["row"], "x": lists}), fields=("row", "x"))
    options = {"shuffle": True, "on_error": "skip", "error_budget": 1}
    row, x = epoch(dataset, 64, **options)
    assert sorted(row.tolist()) == [one for one in range(ROWS) if one != 501]
    np.testing.assert_array_equal(x, np.stack([row, row + 1], 1))
    assert gathered(dataset) > 0


@pytest.mark.parametrize(
    "field, message",
    [
        ("f4+f8", "a field of several columns needs a name: use 'NAME=f4\\+f8'"),
        ("x=f4+missing", "no column for the field 'x' \\(f4\\+missing\\)"),
        ("x=f4+list", "the columns of 'x' must hold one number per row"),
        ("list:nan", "':nan' needs one number per row"),
        ("x=f4+f8:mask", "'x'.*cannot be of kind mask|is an array and cannot be of kind mask"),
    ],
)
def test_refusals(write: Callable[..., Path], field: str, message: str) -> None:
    with pytest.raises(feedline.ConfigError, match=message):
        feedline.open(write(NUMBERS), fields=("row", field))


def test_a_null_among_many_rows_is_an_error_of_its_row_only(tmp_path: Path) -> None:
    """The rows of the null's block are copied from the columns, all others from the copy in memory."""
    rows = 140_000
    values = np.arange(rows, dtype=np.float32)
    missing = pa.array(values, mask=np.arange(rows) == 70_001)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"row": values, "x": missing}), path)
    dataset = feedline.open(path, fields=("row", "x"))
    with dataset.loader(4096, shuffle=True, on_error="skip", error_budget=1, output="numpy") as loader:
        fields = [np.concatenate(field) for field in zip(*map(tuple, loader), strict=True)]
        assert [(error.record, error.key) for error in loader.errors] == [(70_001, "x/00070001")]
    assert np.array_equal(np.sort(fields[0]), np.delete(values, 70_001))
    assert np.array_equal(fields[0], fields[1])
    assert "numbers are stored row by row in memory" in dataset.explain()


def test_a_file_that_changes_between_epochs_is_an_error(write: Callable[..., Path]) -> None:
    path = write(NUMBERS)
    dataset = feedline.open(path, fields=("row", "f4"))
    with dataset.loader(64, shuffle=True, output="numpy") as loader:
        assert sum(len(batch[0]) for batch in loader) == ROWS
        with open(path, "ab") as file:
            file.write(b"more")
        with pytest.raises(feedline.StorageError, match="the file has changed between index and read") as caught:
            for _ in range(3):  # the next epoch may have begun before the change
                list(loader)
        assert caught.value.shard == str(path)


def test_inspect_reports_blocks_that_do_not_fit_in_memory(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lists of compressed files are in blocks; single numbers of Arrow files are in memory."""
    path = write({"list": NUMBERS["list"]})
    is_compressed = not path.name.startswith("plain") or path.suffix == ".parquet"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    feedline.testing.force(block_cache_bytes=4096)
    found = feedline.inspect(path).findings
    feedline.testing.force()
    found = [finding for finding in found if finding.code == "compressed_blocks"]
    assert len(found) == is_compressed
    for finding in found:
        assert re.search(
            r"read at random: a block holds about \d+ samples, .* stay in memory; shuffle=True", finding.text
        )
    assert not [finding for finding in feedline.inspect(path).findings if finding.code == "compressed_blocks"]
