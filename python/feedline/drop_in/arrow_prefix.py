# SPDX-License-Identifier: Apache-2.0
"""A dataset of Hugging Face's whose known transforms the engine applies, in whichever worker it is."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

from ..errors import Error
from . import arrow_images, sources, transforms
from .native_prefix import Reader


class ArrowPrefix:
    """Stands for `dataset` in a worker: same samples, and the rest of the image's transforms runs as it is.

    What the engine cannot read, the dataset reads itself. Random operations of the engine draw from torch's generator
    of the worker: one number for each sample, and none where there are no random operations.
    """

    def __init__(self, dataset: Any) -> None:
        self._inner = dataset
        self._readers = threading.local()  # one in each process and thread that reads

    @property
    def original(self) -> Any:
        """What users know."""
        return self._inner

    def __len__(self) -> int:
        return len(self._inner)

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
        except (IndexError, TypeError, ValueError):  # the dataset says it
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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_inner", "_readers"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __getstate__(self) -> Any:
        return (self._inner,)

    def __setstate__(self, state: tuple[Any]) -> None:
        self._inner, self._readers = state[0], threading.local()
