# SPDX-License-Identifier: Apache-2.0
"""Recognises datasets whose samples are rows of arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from ..native.arrays import ArrayTable, ConcatTable, SubsetTable, Table
from ..native.arrow_columns import columns_of
from ..options.settings import Settings
from .datasets import arrow_images
from .unknown_datasets import why_unknown

_NUMBERS = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.bool,
)
_TENSOR_ONLY = (torch.bfloat16, torch.complex64, torch.complex128)
# Passing a batch to another thread and back costs about as much as gathering this many bytes.
_WORTH_A_THREAD = 1 << 20


def table_of(dataset: Any) -> Table | str:
    """Returns `dataset` as a table, or the reason why it is not one."""
    kind = type(dataset)
    if kind is TensorDataset:
        return _tensors("TensorDataset", dataset.tensors, as_list=True)
    if kind is torch.Tensor:
        return _tensors("tensor", (dataset,), as_list=False)
    if kind in (np.ndarray, np.memmap):
        return _array(dataset)
    if kind is Subset:
        inner = table_of(dataset.dataset)
        return inner if isinstance(inner, str) else SubsetTable(inner, dataset)
    if kind is ConcatDataset:
        return _joined(dataset)
    if arrow_images.is_one(dataset):
        return columns_of(dataset)
    return why_unknown(dataset)


def _tensors(name: str, tensors: tuple[Any, ...], as_list: bool) -> Table | str:
    for tensor in tensors:
        if not _is_plain(tensor) or tensor.is_conj() or tensor.is_neg():
            return f"a {type(tensor).__qualname__} that is not a plain CPU tensor without gradients"
        if tensor.dtype not in (*_NUMBERS, *_TENSOR_ONLY) or not tensor.ndim:
            return f"rows of {tensor.dtype} with shape {tuple(tensor.shape)} stay in Python"
    if not tensors:
        return f"{name} without tensors"
    return ArrayTable(name, list(tensors), as_list, mapped=False)


def _is_plain(value: Any) -> bool:
    """Returns whether `value` is exactly a torch.Tensor that is dense, on the CPU, and without gradients."""
    return (
        type(value) is torch.Tensor
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and not value.requires_grad
        and not value.is_quantized
    )


def _array(array: Any) -> Table | str:
    if array.ndim < 2:
        return "samples of a one-dimensional array are NumPy scalars, not rows"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # read-only, but it is not written here
            tensor = torch.from_numpy(array)
    except (TypeError, ValueError) as error:
        return f"{type(array).__name__} of {array.dtype}: {error}"
    if tensor.dtype not in _NUMBERS:
        return f"rows of {array.dtype} stay in Python"
    return ArrayTable(f"{type(array).__name__} of {array.dtype}", [tensor], False, isinstance(array, np.memmap))


def _joined(dataset: Any) -> Table | str:
    parts = [table_of(part) for part in dataset.datasets]
    tables = [part for part in parts if isinstance(part, Table)]
    for part in parts:
        if isinstance(part, str):
            return part
    first = tables[0]
    if any((t.columns, t.as_list, t.names) != (first.columns, first.as_list, first.names) for t in tables):
        return "the concatenated arrays differ in dtype or row shape"
    return ConcatTable(tables, dataset)


def thread_count(table: Table, settings: Settings) -> int:
    """Returns the number of threads that gather rows in advance; 0 if passing a batch to a thread would cost more than
    gathering it.
    """
    batch_bytes = table.row_bytes() * (settings.batch_size or 1)
    return settings.num_workers if table.mapped or batch_bytes >= _WORTH_A_THREAD else 0
