# SPDX-License-Identifier: Apache-2.0
"""Batches whose fields have no elements are arrays with the right extents."""

from pathlib import Path

import numpy as np
import pytest

import feedline


@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_lists_of_a_table_that_are_all_empty(tmp_path, output, on_error):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    if output == "torch":
        pytest.importorskip("torch")
    parquet.write_table(pa.table({"tokens": pa.array([[]] * 8, pa.list_(pa.int64()))}), tmp_path / "t.parquet")
    dataset = feedline.open(tmp_path / "t.parquet", fields=("tokens",))
    for batch in dataset.loader(4, output=output, on_error=on_error):
        # rows of variable length may be an array or a list; each row is empty
        assert [len(row) for row in batch.tokens] == [0] * 4


@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize("form", ["pad", "list"])
def test_ragged_arrays_without_elements(form, output):
    if output == "torch":
        pytest.importorskip("torch")
    empty = feedline.ragged([np.zeros((0, 4), np.float32)] * 6)
    only = feedline.arrays(x=empty, fields="x:boxes").collate(form)
    assert [[len(row) for row in batch.x] for batch in only.loader(4, output=output)] == [[0] * 4, [0] * 2]
    others = feedline.arrays(x=empty, id=np.arange(6), fields="x:boxes").collate(form, fields="x")
    batches = list(others.loader(4, output=output))
    assert [[len(row) for row in batch.x] for batch in batches] == [[0] * 4, [0] * 2]
    assert [int(i) for batch in batches for i in batch.id] == list(range(6))


@pytest.mark.parametrize("end", ["parquet", "arrow"])
def test_list_columns_are_stacked_by_the_shape_of_the_first_row(tmp_path: Path, end: str) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def opened(rows: list[list[int]]) -> feedline.Dataset:
        table, path = pa.table({"tokens": pa.array(rows, pa.list_(pa.int64()))}), tmp_path / f"t.{end}"
        if end == "parquet":
            parquet.write_table(table, path)
        else:
            with pa.ipc.new_file(str(path), table.schema) as file:
                file.write_table(table)
        return feedline.open(path)

    (batch,) = opened([[1, 2], [3, 4]]).loader(2, output="numpy")
    np.testing.assert_array_equal(batch.tokens, [[1, 2], [3, 4]])
    assert [one.tokens.shape for one in opened([[]] * 4).loader(2, output="numpy")] == [(2, 0), (2, 0)]
    loader = opened([[], [7], []]).loader(2, output="numpy", on_error="skip")
    assert [one.tokens.shape for one in loader] == [(2, 0)]
    assert [bad.record for bad in loader.errors] == [1]
