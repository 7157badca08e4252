# SPDX-License-Identifier: Apache-2.0
"""Batches of images in memory, which the engine transforms and collates."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ..lowering.datasets import sources
from .images_iterator import NativeImageIterator


class _Begun(NamedTuple):
    labels: list[Any]


class NativeImageArrayIterator(NativeImageIterator):
    """Works like the iterator over files. The dataset itself returns samples that the engine does not support."""

    def _begin(self, index: Any, batch: int) -> Any:
        arrays = self._plan.arrays
        try:
            found = [sources.locate(self._dataset, i) for i in index]
            if not all(arrays.is_of(leaf) for leaf, _ in found):
                return None
            rows = [arrays.row(i) for _, i in found]
            labels = [arrays.target(leaf, i) for leaf, i in found]
            draws = [self._draw(int(i), batch, row) for row, i in enumerate(index)]
        except Exception:
            return None  # the dataset raises it again at the point where torch would
        if not rows:
            return None
        self._ready(rows).engine.give(rows, draws)
        return _Begun(labels)

    def _take(self, begun: Any) -> tuple[torch.Tensor, list[int]]:
        batch = self._next_batch()
        return batch.to_torch()[0], [row for row, _ in batch.bad]
