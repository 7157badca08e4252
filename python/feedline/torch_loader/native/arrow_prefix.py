# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face dataset whose supported transforms are applied by the engine in any worker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...errors import Error
from ..lowering.datasets import arrow_images, sources
from ..lowering.transforms import transforms
from .prefix import NativePrefix, Reader


class ArrowPrefix(NativePrefix):
    """Like NativePrefix, for tables of images. The dataset itself reads images that the engine cannot read."""

    def __getitem__(self, index: Any) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        found = [sources.locate(self._inner, index) for index in indices]
        if not found:
            return []
        leaf = found[0][0]
        try:
            table = arrow_images.of(leaf)
            rows = [table.row(index) for _, index in found]
        except (IndexError, TypeError, ValueError):  # the dataset raises it
            return [leaf[index] for leaf, index in found]
        others = table.others(rows)
        return [self._sample(leaf, table, row, values) for row, values in zip(rows, others, strict=True)]

    def _sample(self, leaf: Any, table: arrow_images.ImageTable, row: int, others: dict[str, Any]) -> Any:
        reader = getattr(self._readers, "reader", None)
        if reader is None or reader.pid != os.getpid() or self._readers.table is not table:
            chain = transforms.front_of(table.function.transform, table.dataset, table.channels)
            reader = self._readers.reader = Reader(sources.GivenFiles("images"), chain)
            self._readers.table = table
        image = table.image(row)
        if not reader.reads or image.data is None or not table.fits(image):
            return leaf[row]
        try:
            value = reader.read_encoded(image.data)
        except Error:
            return leaf[row]
        for transform in reader.rest:
            value = transform(value)
        return table.sample(value, others)
