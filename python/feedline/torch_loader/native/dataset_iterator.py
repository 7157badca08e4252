# SPDX-License-Identifier: Apache-2.0
"""Batches of a `feedline.Dataset` in the order of the loader's samplers, in the form that default_collate creates."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch

from ...loader import batches
from ..lowering.datasets import sources
from .images_iterator import NativeImageIterator


class _Begun(NamedTuple):
    rows: int


class NativeDatasetIterator(NativeImageIterator):
    """If the engine cannot read a sample, the dataset itself reads the sample again in this process, and raises the
    error or returns a replacement.
    """

    def _start(self, loader: Any) -> None:
        schema = self._plan.dataset.schema
        self._batch_type = batches.tuple_type(batches.attribute_names(schema), self._plan.dataset.unopened)
        self._is_number = [not spec.shape for spec in schema.values()]
        super()._start(loader)
        _warn_of_nothing(loader)

    def _begin(self, index: Any, batch: int) -> Any:
        try:
            samples = [self._sample(i) for i in index]
            draws = [self._draw(int(i), batch, row) for row, i in enumerate(index)]
        except Exception:
            return None  # the dataset raises it again at the point where torch would
        if not samples:
            return None
        self._ready(samples).engine.give(samples, draws)
        return _Begun(len(samples))

    def _sample(self, index: Any) -> int:
        dataset, inner = sources.locate(self._dataset, index)
        return int(dataset._index(inner))

    def _finish(self, index: Any, begun: Any) -> Any:
        if begun is None:
            return self._in_python(index)
        batch = self._next_batch()
        columns = [column[: len(index)] for column in batch.to_torch()]
        bad = {row for row, _ in batch.bad if row < len(index)}
        progress = self._progress
        progress.native_rows += len(index)
        if not bad:
            return self._batch_type(*map(_collated, columns, self._is_number))
        progress.native_misses += len(bad)
        return self._replace_bad(index, self._samples_of(columns, len(index)), bad)

    def _samples_of(self, columns: list[torch.Tensor], rows: int) -> list[Any]:
        """Returns the rows of a batch as samples of the dataset."""
        arrays = [column.cpu().numpy() for column in columns]
        return [
            self._batch_type(
                *(a[row].item() if number else a[row] for a, number in zip(arrays, self._is_number, strict=True))
            )
            for row in range(rows)
        ]


def _collated(column: torch.Tensor, is_number: bool) -> torch.Tensor:
    """Converts a batch's field like default_collate, which uses only two dtypes for Python numbers other than
    booleans.
    """
    if not is_number or column.dtype is torch.bool:
        return column
    return column.to(torch.float64 if column.dtype.is_floating_point else torch.int64)


def _warn_of_nothing(loader: Any) -> None:
    sampler = loader.batch_sampler
    if loader.drop_last and loader.batch_size and len(loader.dataset) > 0 and len(sampler) == 0:
        warnings.warn(
            f"drop_last leaves no batches: {len(loader.sampler)} samples, fewer than batch_size={loader.batch_size}",
            stacklevel=2,
        )
