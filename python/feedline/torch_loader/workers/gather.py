# SPDX-License-Identifier: Apache-2.0
"""Copies samples into the batch's memory as they are read, so that a worker holds only one large sample instead of all
samples of a batch.

A large tensor or array of sample i is copied to row i of a ring block, and the sample then refers to that row. torch's
default_collate processes the samples as usual; if it stacks consecutive rows of one block, the block is the result.
Values whose type or shape differs from those of the first sample are left to torch, which stacks or rejects them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..fetching.fetch import Gatherer
from .ring_writer import RingWriter
from .serialization import LARGE, is_plain, ring_tensor


class RingGatherer(Gatherer):
    """Gathers the samples of a batch in the ring. Only torch's own default_collate may process these samples."""

    def __init__(self, writer: RingWriter) -> None:
        self._writer = writer
        self._rows: dict[Any, torch.Tensor] = {}  # location in the sample -> all rows of the batch
        self._batches: dict[int, torch.Tensor] = {}  # address of row 0 -> the same tensor
        self._count = self._at = 0

    def begin(self, count: int) -> None:
        self._rows, self._batches = {}, {}
        self._count, self._at = count, 0

    def end(self) -> None:
        self.begin(0)

    def add(self, sample: Any) -> Any:
        if self._at == 0 or self._rows:
            sample = self._moved(sample, ())
        self._at += 1
        return sample

    def batch_of(self, rows: Any) -> torch.Tensor | None:
        """Returns the tensor whose first rows are exactly `rows`, in order; None if there is none."""
        batch = self._batches.get(rows[0].data_ptr())
        if batch is None or len(rows) > len(batch):
            return None
        shape, address, size = batch.shape[1:], batch.data_ptr(), batch.stride(0) * batch.element_size()
        for i, row in enumerate(rows):
            if row.data_ptr() != address + i * size or row.shape != shape or row.dtype != batch.dtype:
                return None
            if not row.is_contiguous():
                return None
        return batch[: len(rows)]

    def _moved(self, value: Any, place: tuple[Any, ...]) -> Any:
        kind = type(value)
        if kind is torch.Tensor:
            row = self._row(value, place)
            return value if row is None else row
        if kind is np.ndarray:
            tensor = _as_tensor(value)
            row = None if tensor is None else self._row(tensor, place)
            return value if row is None else row.numpy()
        if kind is dict:
            return {key: self._moved(part, (*place, key)) for key, part in value.items()}
        if kind is tuple or kind is list:
            return kind(self._moved(part, (*place, i)) for i, part in enumerate(value))
        return value

    def _row(self, value: torch.Tensor, place: tuple[Any, ...]) -> torch.Tensor | None:
        if not is_plain(value) or value.nbytes < LARGE:
            return None
        if self._at == 0:
            size = value.nbytes * self._count
            batch = ring_tensor(self._writer.allocate(size), value.dtype, (self._count, *value.shape))
            self._rows[place] = self._batches[batch.data_ptr()] = batch
        rows = self._rows.get(place)
        if rows is None or rows.shape[1:] != value.shape or rows.dtype != value.dtype:
            return None
        return rows[self._at].copy_(value)


def _as_tensor(array: Any) -> torch.Tensor | None:
    """Returns `array` as a tensor without a copy, if torch converts it without a warning or an error."""
    if not array.flags.writeable:
        return None
    try:
        return torch.from_numpy(array)
    except (TypeError, ValueError):
        return None
