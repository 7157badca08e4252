# SPDX-License-Identifier: Apache-2.0
"""Batches of the images of an Arrow table, which the engine decodes, transforms and collates where they lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ..known import sources
from .images_iterator import NativeImageIterator


class _Begun(NamedTuple):
    first: int  # number of its first file in the engine
    labels: list[dict[str, Any]]  # of each row the values that are no images
    others: list[int]  # rows whose images the dataset itself is to read


class NativeArrowIterator(NativeImageIterator):
    """As of files; a sample is a dict, and its other values are those that datasets' own code gives."""

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
            return None  # the dataset raises it again, where torch would
        unfit = [i for i, image in enumerate(images) if not table.fits(image)]
        first = self._ready(rows).give([image.given() for image in images], draws)
        return _Begun(first, others, unfit)

    def _take(self, begun: Any) -> tuple[torch.Tensor, list[int]]:
        images, bad = super()._take(begun)
        return images, sorted({*bad, *begun.others})

    def _samples(self, images: torch.Tensor, labels: list[Any]) -> list[Any]:
        return [self._plan.arrays.sample(image, others) for image, others in zip(images, labels, strict=True)]

    def _collated(self, images: torch.Tensor, labels: list[Any], index: Any) -> Any:
        columns = {
            name: images if column is None else [others[name] for others in labels]
            for name, column in self._plan.arrays.names
        }
        try:
            return self._plan.collation(columns)
        except Exception:
            return self._in_python(index)  # which raises it with torch's words
