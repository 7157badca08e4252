# SPDX-License-Identifier: Apache-2.0
"""Concatenated datasets of image files, each of which has its own native transforms in a worker."""

from __future__ import annotations

from typing import Any

from ..lowering.datasets import sources
from ..lowering.own_code import own_classes
from .own_classes import OwnClassPrefix
from .prefix import NativePrefix


class JoinedPrefix(NativePrefix):
    """Replaces a ConcatDataset in a worker, or a Subset of one. Each part is read as if it were the only one."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset)
        self._parts = _parts_of(dataset)

    def __getitem__(self, index: Any) -> Any:
        leaf, inner_index = sources.locate(self._inner, index)
        part = self._parts.get(id(leaf))
        return self._inner[index] if part is None else part[inner_index]

    def begin_epoch(self) -> None:
        for part in self._parts.values():
            part.begin_epoch()

    def __setstate__(self, state: tuple[Any]) -> None:
        super().__setstate__(state)
        self._parts = _parts_of(self._inner)


def _parts_of(dataset: Any) -> dict[int, NativePrefix]:
    """Returns the parts by the identity of their datasets, to which they refer."""
    leaves = sources.distinct_leaves(dataset)
    return {id(leaf): (OwnClassPrefix if own_classes.is_one(leaf) else NativePrefix)(leaf) for leaf in leaves}
