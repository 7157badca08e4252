# SPDX-License-Identifier: Apache-2.0
"""A torch tensor whose data is replaced after `feedline.arrays()`: the rows do not change."""

import numpy as np
import pytest

import feedline

torch = pytest.importorskip("torch")

ROWS = 200_000


def halved(x):
    x.data = x.data.half()


def emptied(x):
    x.data = torch.empty(0)


def set_to_another(x):
    x.set_(torch.empty(5))


@pytest.mark.parametrize("change", [halved, emptied, set_to_another])
@pytest.mark.parametrize("kind", ["parameter", "tensor", "ragged"])
def test_rows_stay(change, kind):
    x = torch.ones(ROWS)
    if kind == "parameter":
        x = torch.nn.Parameter(x, requires_grad=False)
    given = feedline.ragged(x, torch.full((ROWS // 2,), 2)) if kind == "ragged" else x
    dataset = feedline.arrays(x=given)
    loader = dataset.loader(1000, output="numpy")
    change(x)
    others = [torch.full((ROWS,), 7.0) for _ in range(3)]
    for _ in range(2):
        assert sum(float(batch.x.sum()) for batch in loader) == ROWS
    assert float(np.sum(dataset[0].x)) == (2 if kind == "ragged" else 1)
    assert len(others) == 3


def test_torch_refuses_to_resize_what_is_read():
    x = torch.ones(ROWS)
    dataset = feedline.arrays(x=x)
    with pytest.raises(RuntimeError, match="resizable"):
        x.resize_(10 * ROWS)
    assert sum(float(batch.x.sum()) for batch in dataset.loader(1000)) == ROWS


def test_changed_values_show():
    x = torch.zeros(10)
    dataset = feedline.arrays(x=x)
    x[3] = 5
    assert dataset[3].x == 5


@pytest.mark.parametrize("dtype", [torch.int32, torch.float16])
def test_a_tensor_dataset_has_the_rows_of_now(dtype):
    table = torch.utils.data.TensorDataset(torch.arange(400, dtype=torch.float32).reshape(100, 4))
    loader = feedline.DataLoader(table, batch_size=10)
    table.tensors[0].data = torch.arange(400).reshape(100, 4).to(dtype)
    found = torch.cat([batch[0] for batch in loader])
    assert found.dtype == dtype
    assert torch.equal(found, table.tensors[0])
