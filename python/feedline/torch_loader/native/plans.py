# SPDX-License-Identifier: Apache-2.0
"""What `lowering.plan_lowering` decides of a loader, and what each of its stages does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ...data.dataset import Dataset
from ..known.known_collate import Stock

NATIVE = "native"
_STOCK = Stock()


@dataclass(frozen=True)
class Stage:
    """One line of `explain()`."""

    name: str
    what: str
    runs: str
    why: str


@dataclass(frozen=True)
class Reason:
    """Nothing is lowered: what each stage does instead, and why."""

    stages: list[Stage]


class LoweredPlan(Protocol):
    """A loader that runs natively from reading to collating."""

    stages: list[Stage]

    def iterate(self, loader: Any) -> Iterator[Any]:
        """Batches of one epoch, in the order of the loader's own samplers."""
        ...


@dataclass(frozen=True)
class ImagePlan:
    """Image files, transformed by a chain that the engine knows whole; or the samples of a `feedline.Dataset`."""

    stages: list[Stage]
    iterator: Callable[[Any, ImagePlan], Iterator[Any]]  # called with the loader and this plan
    dataset: Dataset
    files: Any  # sources.GivenFiles, which the samples are read as; None: they are those of `dataset`
    threads: int
    unique: bool  # no sample comes twice in an epoch
    adapts: bool  # `threads` is the most; as many work as the loop needs
    collation: Any = _STOCK  # what becomes of the images and labels of a batch: known_collate's, or of columns
    arrays: Any = None  # image_arrays.ImageArrays or arrow_images.ImageTable, whose rows the samples are

    def iterate(self, loader: Any) -> Iterator[Any]:
        return self.iterator(loader, self)


@dataclass(frozen=True)
class ArrayPlan:
    """Rows of arrays that are in memory or mapped."""

    stages: list[Stage]
    iterator: Callable[[Any, ArrayPlan], Iterator[Any]]  # called with the loader and this plan
    table: Any  # native_arrays.Table
    threads: int  # 0: gathered in the calling thread

    def iterate(self, loader: Any) -> Iterator[Any]:
        return self.iterator(loader, self)


@dataclass(frozen=True)
class PrefixPlan:
    """Image files whose first transforms run natively, within each worker."""

    stages: list[Stage]
    known: tuple[str, ...]  # names of the transforms that run natively
    wrap: Callable[[Any], Any]  # the dataset that workers read in the place of yours


Plan = ImagePlan | ArrayPlan | PrefixPlan | Reason
