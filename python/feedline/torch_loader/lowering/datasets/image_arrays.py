# SPDX-License-Identifier: Apache-2.0
"""Recognises torchvision's datasets of images in memory (CIFAR, MNIST, similar classes and FakeData) by exact type."""

from __future__ import annotations

import copy
import math
import operator
import sys
import weakref
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from ....data.dataset import Dataset
from ....data.memory import sequences


@dataclass(frozen=True)
class _Kind:
    """Describes the attributes of a class that hold its images and targets.

    Attributes:
        module: the class's module in torchvision.datasets.
        targets: name of the attribute that holds the targets.
        grey: whether images have mode L (as in Pillow).
        first: whether the channel dimension precedes rows and columns.
    """

    module: str
    targets: str = "targets"
    grey: bool = False
    first: bool = False


_MOST_FAKE_BYTES = 256 << 20  # FakeData's default images take 143 MiB
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
    return _kind_of(dataset) is not None or _is_fake(dataset)


def _is_fake(dataset: Any) -> bool:
    return type(dataset) is getattr(sys.modules.get("torchvision.datasets.fakedata"), "FakeData", None)


_known: weakref.WeakKeyDictionary[Any, ImageArrays | FakeImages] = weakref.WeakKeyDictionary()


def of(leaf: Any) -> ImageArrays | FakeImages:
    """Returns the images of a dataset. The object is reused as long as the images do not change.

    Raises:
        ValueError: the dataset's images are not in the form in which torchvision creates them.
    """
    arrays = _known.get(leaf)
    if arrays is None or not arrays.is_of(leaf):
        arrays = _known[leaf] = FakeImages(leaf) if _is_fake(leaf) else ImageArrays(leaf)
    return arrays


class ImageArrays:
    """The images of a dataset, for the engine.

    Attributes:
        dataset: the images without transforms, all of the same size.
        channels: number of channels of the PIL images.
    """

    def __init__(self, leaf: Any) -> None:
        """Raises:
        ValueError: the images are not arrays in the form that torchvision creates; the message states the reason.
        """
        kind = _kind_of(leaf)
        assert kind is not None
        self._kind, self._data = kind, leaf.data
        pixels = numpy.asarray(leaf.data)
        shape = pixels.shape
        channels = 1 if kind.grey else shape[1 if kind.first else 3] if pixels.ndim == 4 else 0
        if pixels.dtype != numpy.uint8 or pixels.ndim != (3 if kind.grey else 4) or channels not in (1, 3):
            raise ValueError(f"the dataset's data is {pixels.dtype} of shape {shape}")
        self._rows, self.channels = shape[0], channels
        images = sequences.arrays(image=pixels, fields=["image:image"])
        if channels == 1:
            images = images.decode("L")
        self.dataset: Dataset = images.center_crop(shape[2:] if kind.first else shape[1:3])  # the size of all of them

    def is_of(self, leaf: Any) -> bool:
        """Returns whether the dataset still has the same array of images."""
        return leaf.data is self._data

    def row(self, index: Any) -> int:
        """Raises:
        IndexError, TypeError: `index` is not a valid image number.
        """
        row = operator.index(index)
        if not -self._rows <= row < self._rows:
            raise IndexError("not a row")
        return row % self._rows

    def target(self, leaf: Any, index: Any) -> int:
        return int(getattr(leaf, self._kind.targets)[index])


class FakeImages:
    """Images in torchvision's FakeData, each generated from its number. Each image is created at its first use.

    Attributes:
        dataset, channels: as in ImageArrays.
    """

    def __init__(self, leaf: Any) -> None:
        """Raises:
        ValueError: the images are too large to store, or have a mode that the engine does not read.
        """
        self._setting = _fake_setting(leaf)
        shape = tuple(leaf.image_size)
        if len(shape) != 3 or shape[0] not in (1, 3) or leaf.size < 1:
            raise ValueError(f"the dataset's images have the shape {shape}")
        if leaf.size * math.prod(shape) > _MOST_FAKE_BYTES:
            raise ValueError(f"the dataset's images need more than {_MOST_FAKE_BYTES >> 20} MiB of memory")
        self.channels = shape[0]
        self._pixels = numpy.zeros((leaf.size, *shape[1:], shape[0]), numpy.uint8)  # takes no memory until it is
        # written
        self._targets = [-1] * leaf.size  # -1 if not created yet
        if not self._is_as_torchvisions(leaf):
            raise ValueError("this torchvision version generates different images from the same numbers")
        images = sequences.arrays(image=self._pixels, fields=["image:image"])
        if self.channels == 1:
            images = images.decode("L")
        self.dataset: Dataset = images.center_crop(shape[1:])  # the size of all of them

    def is_of(self, leaf: Any) -> bool:
        return self._setting == _fake_setting(leaf)

    def row(self, index: Any) -> int:
        """Checks an image number and creates the image.

        Raises:
            IndexError, TypeError: `index` is not a valid, non-negative image number.
        """
        row = operator.index(index)
        if not 0 <= row < len(self._targets):
            raise IndexError("not a row")
        if self._targets[row] < 0:
            self._make(row)
        return row

    def target(self, leaf: Any, index: Any) -> int:
        return self._targets[operator.index(index)]

    def _make(self, row: int) -> None:
        _, shape, classes, offset = self._setting
        generator = torch.Generator().manual_seed(row + offset)
        image = torch.randn(*shape, generator=generator).mul(255).byte()
        self._targets[row] = int(torch.randint(0, classes, (1,), generator=generator))
        self._pixels[row] = image.permute(1, 2, 0).numpy()

    def _is_as_torchvisions(self, leaf: Any) -> bool:
        plain = copy.copy(leaf)
        plain.transform = plain.target_transform = None
        image, target = plain[self.row(0)]
        return bool(target == self._targets[0] and (numpy.asarray(image).ravel() == self._pixels[0].ravel()).all())


def _fake_setting(leaf: Any) -> tuple[Any, ...]:
    return leaf.size, tuple(leaf.image_size), leaf.num_classes, leaf.random_offset
