# SPDX-License-Identifier: Apache-2.0
"""A loader that does not fit into the available memory reports this when it is created, once, and reads no sample."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Subset, TensorDataset

from feedline import DataLoader, SettingsWarning
from feedline.machine import limits
from feedline.torch_loader import preflight

GB = 10**9


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets how much memory is available."""
    monkeypatch.setattr(preflight, "_warned", False)

    def setting(count: int) -> None:
        monkeypatch.setattr(limits, "share_of_memory_left", lambda: count)

    return setting


def wide(rows: int = 4) -> TensorDataset:
    """Rows of 100 MB each that use no memory."""
    return TensorDataset(torch.zeros(1).expand(rows, 25_000_000), torch.arange(rows))


def made(*arguments: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        DataLoader(*arguments, **options)
    return [str(one.message) for one in told if one.category is SettingsWarning]


def test_what_does_not_fit_is_reported_with_figures_and_once(left: Any) -> None:
    left(3 * GB)
    (words,) = made(wide(), 5, num_workers=2, prefetch_factor=4, memory_budget=8 * GB)
    assert "needs 5.0 GB of the 3.0 GB" in words and "2 workers x 4 prefetched batches x 500.0 MB" in words
    assert made(wide(), 5, num_workers=2, prefetch_factor=4, memory_budget=8 * GB) == []


def test_the_budget_bounds_what_waits(left: Any) -> None:
    """The default is a quarter of the available memory; one batch per worker is always produced."""
    left(3 * GB)
    assert made(wide(), 5, num_workers=2, prefetch_factor=4) == []
    left(GB)
    (words,) = made(wide(), 5, num_workers=2, prefetch_factor=4)
    assert "2 workers x 1 prefetched batches" in words


def test_the_loops_own_batch_counts_without_workers(left: Any) -> None:
    left(GB // 3)
    assert len(made(wide(), 5)) == 1


@pytest.mark.parametrize(
    ("dataset", "size"),
    [
        (TensorDataset(torch.zeros(3, 5), torch.zeros(3, dtype=torch.int16)), 22),
        (Subset(TensorDataset(torch.zeros(3, 5)), [0]), 20),
        (np.zeros((3, 2, 2)), 32),
        (torch.zeros(7), 4),
        (torch.tensor(7), None),
        ([1, 2, 3], None),
        (TensorDataset(), 0),
    ],
)
def test_rows_of_known_size(dataset: Any, size: int | None) -> None:
    assert preflight.row_bytes(dataset) == size


def test_of_rows_of_unknown_size_nothing_is_reported_and_none_is_read(left: Any) -> None:
    class Rows:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            raise AssertionError("a sample was read")

    left(1)
    assert made(Rows(), 2, num_workers=2) == []
    assert made(wide(), batch_size=None) == []


def test_the_doctor_makes_the_same_sum(left: Any) -> None:
    from feedline.machine.planned_load import need_of

    load = preflight.planned(DataLoader(wide(), 5, num_workers=2, prefetch_factor=3), 10**12)
    assert load is not None and need_of(load).least == (2 * 3 + 2) * (500_000_000 + 5 * 8)
