# SPDX-License-Identifier: Apache-2.0
"""Checks, when a loader is created, whether its batches fit into the available memory, as `feedline doctor` does.

Only if a row's size is known without reading one: no sample is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import Subset, TensorDataset

from ..errors import SettingsWarning
from ..machine import limits
from ..machine.planned_load import PlannedLoad, need_of

_AHEAD = 2  # torch's default
_warned = False  # in this process: one warning is enough


def warn(loader: Any, budget: Callable[[], int]) -> None:
    """Warns, once per process, if a loader needs more memory than is available.

    Args:
        loader: a new `feedline.DataLoader`.
        budget: returns :meth:`Settings.budget_bytes`, the size of batches that may wait for the loop.
    """
    global _warned
    if _warned or row_bytes(loader.dataset) is None:
        return
    words = problem_of(loader, budget(), limits.share_of_memory_left())
    if words is not None:
        _warned = True
        warnings.warn(words, SettingsWarning, stacklevel=3)


def problem_of(loader: Any, budget: int, left: int) -> str | None:
    """The warning for a loader whose rank has `left` bytes; None if it fits, or if its rows have no known size."""
    load = planned(loader, budget)
    if load is None:
        return None
    need = need_of(load)
    if need.least <= left:
        return None
    name = type(loader.dataset).__qualname__
    return (
        f"DataLoader over {name}: needs {need.least / 1e9:.1f} GB of the {left / 1e9:.1f} GB available: "
        f"{load.workers} workers x {load.prefetch} ahead x {(load.batch_bytes or 0) / 1e6:,.1f} MB, and "
        f"{need.in_hand / 1e9:.1f} GB of batches in use; use a smaller batch_size, fewer workers, or set memory_budget="
    )


def planned(loader: Any, budget: int) -> PlannedLoad | None:
    """Workers wait once the budget is full, except that one batch per worker always fits."""
    row, size = row_bytes(loader.dataset), loader.batch_size
    if row is None or not isinstance(size, int):
        return None
    batch, workers = row * size, int(loader.num_workers)
    ahead = _AHEAD if loader.prefetch_factor is None else int(loader.prefetch_factor)
    if workers and batch:
        ahead = max(1, min(ahead, budget // (workers * batch)))
    return PlannedLoad(workers, ahead, batch, pinned=bool(loader.pin_memory), in_shared_memory=False, batch_size=size)


def row_bytes(dataset: Any) -> int | None:
    """The size of a sample; None if it is unknown without reading one."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    arrays = dataset.tensors if type(dataset) is TensorDataset else (dataset,)
    if not all(isinstance(array, torch.Tensor | np.ndarray) and len(array.shape) for array in arrays):
        return None
    sizes = [int(np.prod(array.shape[1:])) * int(array.dtype.itemsize) for array in arrays]
    return sum(sizes)
