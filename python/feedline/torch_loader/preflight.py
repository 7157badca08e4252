# SPDX-License-Identifier: Apache-2.0
"""Checks, when a loader is created, whether its batches fit into the available memory, as `feedline doctor` does.

The check only runs if the size of a row is known without reading a sample.
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
    """Warns if a loader needs more memory than is available, at most once per process.

    Args:
        loader: a new `feedline.DataLoader`.
        budget: a function that returns :meth:`Settings.budget_bytes`, the maximum size of batches that wait for the
            loop.
    """
    global _warned
    if _warned or row_bytes(loader.dataset) is None:
        return
    words = problem_of(loader, budget(), limits.share_of_memory_left())
    if words is not None:
        _warned = True
        warnings.warn(words, SettingsWarning, stacklevel=3)


def problem_of(loader: Any, budget: int, left: int) -> str | None:
    """Returns the warning for a loader whose rank has `left` bytes of memory left; None if the loader fits or the size
    of its rows is unknown.
    """
    load = planned(loader, budget)
    if load is None:
        return None
    need = need_of(load)
    if need.least <= left:
        return None
    name = type(loader.dataset).__qualname__
    return (
        f"DataLoader over {name}: needs {need.least / 1e9:.1f} GB of the {left / 1e9:.1f} GB available: "
        f"{load.workers} workers x {load.prefetch} prefetched batches x {(load.batch_bytes or 0) / 1e6:,.1f} MB, and "
        f"{need.in_hand / 1e9:.1f} GB of batches in use; use a smaller batch_size, fewer workers, or set memory_budget="
    )


def planned(loader: Any, budget: int) -> PlannedLoad | None:
    """Returns the load that the loader will cause. Workers wait once the budget is full, but one batch per worker is
    always allowed.
    """
    row, size = row_bytes(loader.dataset), loader.batch_size
    if row is None or not isinstance(size, int):
        return None
    batch, workers = row * size, int(loader.num_workers)
    ahead = _AHEAD if loader.prefetch_factor is None else int(loader.prefetch_factor)
    if workers and batch:
        ahead = max(1, min(ahead, budget // (workers * batch)))
    return PlannedLoad(workers, ahead, batch, pinned=bool(loader.pin_memory), in_shared_memory=False, batch_size=size)


def row_bytes(dataset: Any) -> int | None:
    """Returns the size of a sample in bytes; None if it is unknown without reading a sample."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    arrays = dataset.tensors if type(dataset) is TensorDataset else (dataset,)
    if not all(isinstance(array, torch.Tensor | np.ndarray) and len(array.shape) for array in arrays):
        return None
    sizes = [int(np.prod(array.shape[1:])) * int(array.dtype.itemsize) for array in arrays]
    return sum(sizes)
