# SPDX-License-Identifier: Apache-2.0
"""Batches whose fields have no elements are arrays with the right extents."""

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
