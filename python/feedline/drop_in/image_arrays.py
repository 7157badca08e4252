# SPDX-License-Identifier: Apache-2.0
"""torchvision's datasets whose images are arrays in memory: CIFAR, MNIST and their like, by exact type."""

from __future__ import annotations

import operator
import sys
import weakref
from dataclasses import dataclass
from typing import Any

import numpy

from ..data import sequences
from ..data.dataset import Dataset


@dataclass(frozen=True)
class _Kind:
    """How a class keeps its images and targets.

    Attributes:
        module: of torchvision.datasets.
        targets: the attribute that has them.
        grey: images are Pillow's mode L.
        first: channels come before rows and columns.
    """

    module: str
    targets: str = "targets"
    grey: bool = False
    first: bool = False


_KINDS = {
    "CIFAR10": _Kind("cifar"),
    "CIFAR100": _Kind("cifar"),
    "MNIST": _Kind("mnist", grey=True),
    "FashionMNIST": _Kind("mnist", grey=True),
    "KMNIST": _Kind("mnist", grey=True),
    "EMNIST": _Kind("mnist", grey=True),
    "SVHN": _Kind("svhn", targets="labels", first=True),
}


def _kind_of(dataset: Any) -> _Kind | None:
    name = type(dataset).__name__
    kind = _KINDS.get(name)
    module = sys.modules.get(f"torchvision.datasets.{kind.module}") if kind else None
    return kind if module is not None and getattr(module, name, None) is type(dataset) else None


def is_one(dataset: Any) -> bool:
    return _kind_of(dataset) is not None


_known: weakref.WeakKeyDictionary[Any, ImageArrays] = weakref.WeakKeyDictionary()


def of(leaf: Any) -> ImageArrays:
    """Such a dataset as the engine reads it: the same object for as long as it has the same array.

    Raises ValueError: it is not as torchvision makes it.
    """
    arrays = _known.get(leaf)
    if arrays is None or not arrays.is_of(leaf):
        arrays = _known[leaf] = ImageArrays(leaf)
    return arrays


class ImageArrays:
    """Such a dataset as the engine reads it.

    Attributes:
        dataset: of its images alone, all of one size, before any transform.
        channels: of its images of Pillow's.
    """

    def __init__(self, leaf: Any) -> None:
        """Raises ValueError: its images are not arrays as torchvision makes them; the text says why."""
        kind = _kind_of(leaf)
        assert kind is not None
        self._kind, self._data = kind, leaf.data
        pixels = numpy.asarray(leaf.data)
        shape = pixels.shape
        channels = 1 if kind.grey else shape[1 if kind.first else 3] if pixels.ndim == 4 else 0
        if pixels.dtype != numpy.uint8 or pixels.ndim != (3 if kind.grey else 4) or channels not in (1, 3):
            raise ValueError(f"its data is {pixels.dtype} of shape {shape}")
        self._rows, self.channels = shape[0], channels
        images = sequences.arrays(image=pixels, fields=["image:image"])
        if channels == 1:
            images = images.decode("L")
        self.dataset: Dataset = images.center_crop(shape[2:] if kind.first else shape[1:3])  # which they all have

    def is_of(self, leaf: Any) -> bool:
        """Whether the leaf has still the array that it had."""
        return leaf.data is self._data

    def row(self, index: Any) -> int:
        """Raises IndexError, or TypeError: not the number of an image."""
        row = operator.index(index)
        if not -self._rows <= row < self._rows:
            raise IndexError("not a row")
        return row % self._rows

    def target(self, leaf: Any, index: Any) -> int:
        return int(getattr(leaf, self._kind.targets)[index])
