# SPDX-License-Identifier: Apache-2.0
"""An ImageFolder of which the engine reads each sample and applies the first transforms, in whichever worker it is."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

import numpy
import torch

from ..errors import Error
from . import sources, transforms


class NativePrefix:
    """Stands for `dataset` in a worker: same samples, and the rest of its transforms runs as it is.

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
        leaf, inner_index = sources.locate(self._inner, index)
        reader = getattr(self._readers, "reader", None)
        path, target = leaf.samples[inner_index]
        try:
            if reader is None or reader.pid != os.getpid():
                files = sources.given_files(leaf)
                chain = transforms.fixed_size_front(leaf.transform, files.dataset)
                reader = self._readers.reader = Reader(files, chain)
            sample = reader.read(path)
        except Error:
            return self._inner[index]
        for transform in reader.rest:
            sample = transform(sample)
        if leaf.target_transform is not None:
            target = leaf.target_transform(target)
        return sample, target

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_inner", "_readers"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __getstate__(self) -> Any:
        return (self._inner,)

    def __setstate__(self, state: tuple[Any]) -> None:
        self._inner, self._readers = state[0], threading.local()


class Reader:
    """Reads one image after the other through the known transforms of a chain.

    Attributes:
        pid: of the process that it works in.
        rest: the transforms that are still to come.
    """

    def __init__(self, files: sources.GivenFiles, chain: transforms.Chain, layout: str = "") -> None:
        """`layout`: ``"NCHW"`` or ``"NHWC"``; by default what the chain's images have."""
        self.pid, self.rest = os.getpid(), chain.rest
        self._files = files
        self._chain = chain
        dataset = chain.dataset if transforms.has_fixed_size(chain.dataset) else chain.dataset.collate("list")
        self._engine = dataset._engine.reader(layout or ("NHWC" if chain.flows == transforms.PIL else "NCHW"))
        self._wrap = self._wrapper()

    def read(self, path: Any) -> Any:
        """What the known transforms make of a file. Raises feedline.Error: the engine cannot read it."""
        first = self._files.engine.add([os.fsencode(path)])
        try:
            ((_, pixels),) = self._engine.read(first, 0, self._seed(), 0)
        finally:
            self._files.engine.forget(first)
        return self._wrap(pixels)

    def read_encoded(self, data: bytes) -> Any:
        """The same of a file that is in memory."""
        return self._wrap(self.pixels(data))

    def pixels(self, data: bytes) -> numpy.ndarray:
        """The array that the engine makes of a file in memory."""
        ((_, pixels),) = self._engine.read_encoded(data, 0, self._seed(), 0)
        return pixels

    def _seed(self) -> int:
        return int(torch.empty((), dtype=torch.int64).random_().item()) if self._chain.random else 0

    def _wrapper(self) -> Any:
        """From the engine's array to what the known transforms would have given."""
        if self._chain.flows == transforms.PIL:
            image = importlib.import_module("PIL.Image")
            return lambda pixels: image.fromarray(numpy.squeeze(pixels, 2) if pixels.shape[2] == 1 else pixels)
        if self._chain.tv_image:
            return lambda pixels: importlib.import_module("torchvision.tv_tensors").Image(torch.from_numpy(pixels))
        return torch.from_numpy
