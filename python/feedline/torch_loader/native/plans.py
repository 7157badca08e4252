# SPDX-License-Identifier: Apache-2.0
"""The results of `lowering.plan_lowering`: a loader's plan and its stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...data.dataset import Dataset
from ..lowering.functions.collate_functions import Stock

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
    """The plan of a loader that is not lowered: where each stage runs instead, and why.

    `part`: the dataset that the engine does not read, if the loader's dataset consists of several.
    """

    stages: list[Stage]
    part: Any = None


@dataclass(frozen=True)
class ImagePlan:
    """The plan for image files whose transforms are all supported, and for samples of a `feedline.Dataset`."""

    stages: list[Stage]
    iterator: Callable[[Any, ImagePlan], Iterator[Any]]  # called with the loader and this plan
    dataset: Dataset
    files: Any  # a sources.GivenFiles to which samples are added; None: the samples are those of `dataset`
    threads: int
    unique: bool  # no sample is repeated within an epoch
    adapts: bool  # `threads` is the maximum; the loop's need determines the number
    collation: Any = _STOCK  # processes the images and labels of a batch: from collate_functions, or of columns
    arrays: Any = None  # the samples' rows: an image_arrays.ImageArrays or arrow_images.ImageTable
    more: tuple[ImagePlan, ...] = ()  # for the other images of a sample, if there are several

    def iterate(self, loader: Any) -> Iterator[Any]:
        return self.iterator(loader, self)


@dataclass(frozen=True)
class ArrayPlan:
    """The plan for rows of arrays in memory or in mapped files."""

    stages: list[Stage]
    iterator: Callable[[Any, ArrayPlan], Iterator[Any]]  # called with the loader and this plan
    table: Any  # native.arrays.Table
    threads: int  # 0: gathered in the calling thread

    def iterate(self, loader: Any) -> Iterator[Any]:
        return self.iterator(loader, self)


@dataclass(frozen=True)
class PrefixPlan:
    """The plan for image files whose first transforms run natively within each worker."""

    stages: list[Stage]
    known: tuple[str, ...]  # names of the transforms that run natively
    wrap: Callable[[Any], Any]  # returns the dataset that workers read instead of the user's


Plan = ImagePlan | ArrayPlan | PrefixPlan | Reason
