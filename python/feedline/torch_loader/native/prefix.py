# SPDX-License-Identifier: Apache-2.0
"""An ImageFolder whose leading supported transforms are applied by the engine in any worker."""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy
import torch

from ...errors import Error
from ..fetching.dataset_wrapper import DatasetWrapper
from ..lowering.datasets import sources
from ..lowering.transforms import dino_views, transforms

_MODES = {"RGB": 3, "L": 1}  # Pillow's modes that the engine accepts, and their channels


class NativePrefix(DatasetWrapper):
    """Replaces `dataset` in a worker and returns the same samples. The remaining transforms run in Python.

    The dataset itself reads samples that the engine cannot read. For each sample, the engine's random operations use
    one number from torch's generator in the worker, or no number if no operation is random.
    """

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset)
        self._readers = threading.local()  # one per process and thread that reads

    def __len__(self) -> int:
        return len(self._inner)

    def __getitem__(self, index: Any) -> Any:
        leaf, inner_index = sources.locate(self._inner, index)
        reader = getattr(self._readers, "reader", None)
        path = sources.path_of(leaf, inner_index)
        try:
            if reader is None or reader.pid != os.getpid():
                reader = self._readers.reader = self._make_reader(leaf)
            sample = reader.read(path) if reader.reads else sources.read_by_pillow(leaf, inner_index)
        except Error:
            return self._inner[index]
        except OSError:
            if sources.is_timm(leaf):  # which then returns another sample
                return self._inner[index]
            raise
        target = sources.target_of(leaf, inner_index)
        for transform in reader.rest:
            sample = transform(sample)
        target_transform = sources.target_transform_of(leaf)
        return sample, target if target_transform is None else target_transform(target)

    def _make_reader(self, leaf: Any) -> Any:
        files = sources.given_files(leaf)
        return Reader(files, transforms.front_of(sources.transform_of(leaf), files.dataset))

    def begin_epoch(self) -> None:
        self._readers.__dict__.clear()  # clears the readers of this thread

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_inner", "_readers"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __getstate__(self) -> Any:
        return (self._inner,)

    def __setstate__(self, state: tuple[Any]) -> None:
        self._inner, self._readers = state[0], threading.local()


class Reader:
    """Applies the supported transforms of a chain to one image at a time.

    Attributes:
        pid: the process in which the reader may be used.
        reads: whether any transform is supported.
        rest: the remaining transforms; supported ones among them run natively.
    """

    def __init__(self, files: sources.GivenFiles, chain: transforms.Chain, layout: str = "") -> None:
        """`layout`: ``"NCHW"`` or ``"NHWC"``; by default the layout of the chain's images."""
        self.pid, self.reads = os.getpid(), bool(chain.known)
        self.rest: tuple[Callable[[Any], Any], ...] = rest_of(chain)
        self._files = files
        self._chain = chain
        dataset = chain.dataset if transforms.has_fixed_size(chain.dataset) else chain.dataset.collate("list")
        self._engine = dataset._engine.reader(layout or ("NHWC" if chain.flows == transforms.PIL else "NCHW"))
        self._wrap = _wrapper_of(chain)

    def read(self, path: Any) -> Any:
        """Returns the result of the supported transforms for a file.

        Raises:
            feedline.Error: the engine cannot read the file.
        """
        first = self._files.engine.add([os.fsencode(path)])
        try:
            ((_, pixels),) = self._engine.read(first, 0, self._seed(), 0)
        finally:
            self._files.engine.forget(first)
        return self._wrap(pixels)

    def read_encoded(self, data: bytes) -> Any:
        """Like read(), for a file in memory."""
        return self._wrap(self.pixels(data))

    def pixels(self, data: bytes) -> numpy.ndarray:
        """Returns the engine's array for a file in memory."""
        ((_, pixels),) = self._engine.read_encoded(data, 0, self._seed(), 0)
        return pixels

    def read_image(self, image: Any) -> Any:
        """Like read(), for a PIL image in the mode with which the chain begins."""
        pixels = numpy.asarray(image)
        ((_, made),) = self._engine.read_pixels(pixels.reshape(*pixels.shape[:2], -1), 0, self._seed(), 0)
        return self._wrap(made)

    def _seed(self) -> int:
        return int(torch.empty((), dtype=torch.int64).random_().item()) if self._chain.random else 0


class NativeCrops(NativePrefix):
    """Like NativePrefix, for a transform that makes several crops of an image, all with supported transforms."""

    def _make_reader(self, leaf: Any) -> Any:
        crops = dino_views.crops_of(leaf.transform)
        assert isinstance(crops, dino_views.Crops)
        return CropsReader(sources.given_files(leaf), crops)


class CropsReader(Reader):
    """Returns the result of a class that makes several crops, for one image at a time."""

    def __init__(self, files: sources.GivenFiles, crops: dino_views.Crops) -> None:
        before = crops.before(files.dataset)
        dataset = before.dataset.views(crops.views)
        drawn = (*before.drawn, *(draws for chain in crops.chains for draws in chain.drawn))
        super().__init__(files, transforms.Chain(dataset, crops.known, drawn, transforms.FLOATS))
        self._crops = crops
        self._wraps = [_wrapper_of(chain) for chain in crops.chains]

    def read(self, path: Any) -> Any:
        first = self._files.engine.add([os.fsencode(path)])
        try:
            made = self._engine.read(first, 0, self._seed(), 0)
        finally:
            self._files.engine.forget(first)
        return self._crops.filled([wrap(pixels) for wrap, (_, pixels) in zip(self._wraps, made, strict=True)])


class NativeRun:
    """Supported transforms after an unsupported one: they run natively on RGB and L PIL images, and in Python on other
    values.

    Used by one thread.
    """

    def __init__(self, transforms_: tuple[Any, ...]) -> None:
        self._transforms = transforms_
        self._readers: dict[str, Reader] = {}

    def __call__(self, image: Any) -> Any:
        reader = self._reader(image)
        if reader is None:
            return _applied(self._transforms, image)
        try:
            made = reader.read_image(image)
        except Error:  # the transforms themselves raise their error
            return _applied(self._transforms, image)
        return _applied(reader.rest, made)

    def _reader(self, image: Any) -> Reader | None:
        pillow = sys.modules.get("PIL.Image")
        if pillow is None or type(image) is not pillow.Image or image.mode not in _MODES:
            return None
        reader = self._readers.get(image.mode)
        if reader is None:
            reader = self._readers[image.mode] = Reader(*self._chain(image.mode))
        return reader if reader.reads else None

    def _chain(self, mode: str) -> tuple[sources.GivenFiles, transforms.Chain]:
        files = sources.GivenFiles("images")
        dataset = files.dataset if mode == "RGB" else files.dataset.decode(mode)
        return files, transforms.chain_of(list(self._transforms), dataset, _MODES[mode])


def _wrapper_of(chain: transforms.Chain) -> Callable[[Any], Any]:
    """Returns a function that converts the engine's array to the type that the supported transforms return."""
    if chain.crops == transforms.TUPLE:
        one = _wrapper_of(dataclasses.replace(chain, crops=""))
        return lambda pixels: tuple(map(one, pixels))
    if chain.flows == transforms.PIL:
        image = importlib.import_module("PIL.Image")
        return lambda pixels: image.fromarray(numpy.squeeze(pixels, 2) if pixels.shape[2] == 1 else pixels)
    if chain.flows == transforms.ARRAY:
        return lambda pixels: pixels
    if chain.tv_image:
        return lambda pixels: importlib.import_module("torchvision.tv_tensors").Image(torch.from_numpy(pixels))
    return torch.from_numpy


def rest_of(chain: transforms.Chain) -> tuple[Callable[[Any], Any], ...]:
    """Returns functions for the rest of a chain's transforms, in order."""
    runs = transforms.runs_of(chain, sources.GivenFiles("images").dataset) if chain.rest else []
    return tuple(
        called for run in runs for called in (run.transforms if run.chain is None else [NativeRun(run.transforms)])
    )


def _applied(functions: tuple[Callable[[Any], Any], ...], value: Any) -> Any:
    for function in functions:
        value = function(value)
    return value
