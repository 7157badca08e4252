# SPDX-License-Identifier: Apache-2.0
"""Batches of images from an Arrow table, which the engine decodes from Arrow's memory, transforms and collates."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ..lowering.datasets import sources
from .images_iterator import NativeImageIterator


class _Begun(NamedTuple):
    first: int  # the engine's number of its first file
    labels: list[dict[str, Any]]  # for each row, the values that are not images
    others: list[int]  # rows whose images the dataset itself reads


class NativeArrowIterator(NativeImageIterator):
    """Like the iterator over files, but samples are dicts whose other values are created by datasets' own code."""

    def _begin(self, index: Any, batch: int) -> Any:
        table = self._plan.arrays
        try:
            found = [sources.locate(self._dataset, i) for i in index]
            if not all(table.is_of(leaf) for leaf, _ in found):
                return None
            rows = [table.row(i) for _, i in found]
            images = [table.image(row) for row in rows]
            draws = [self._draw(int(i), batch, row) for row, i in enumerate(index)]
            if not rows:
                return None
            others = table.others(rows)
        except Exception:
            return None  # the dataset raises it again at the point where torch would
        unfit = [i for i, image in enumerate(images) if not table.fits(image)]
        first = self._ready(rows).give([image.given() for image in images], draws)
        return _Begun(first, others, unfit)

    def _take(self, begun: Any) -> tuple[torch.Tensor, list[int]]:
        images, bad = super()._take(begun)
        return images, sorted({*bad, *begun.others})

    def _samples(self, images: torch.Tensor, labels: list[Any]) -> list[Any]:
        return [self._plan.arrays.sample(image, others) for image, others in zip(images.cpu(), labels, strict=True)]

    def _collated(self, images: torch.Tensor, labels: list[Any], index: Any) -> Any:
        columns = {
            name: images if column is None else [others[name] for others in labels]
            for name, column in self._plan.arrays.names
        }
        try:
            return self._plan.collation(columns)
        except Exception:
            return self._in_python(index)  # raises it with torch's message
