# SPDX-License-Identifier: Apache-2.0
"""Replaces a function for `IterableDataset.map` with a function that receives encoded images and transforms them with
the engine.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

import torch

from ... import _engine
from ...errors import Error
from ..lowering.datasets import sources
from ..lowering.functions.batch_functions import OfImages
from ..lowering.transforms import transforms
from .prefix import Reader

MODES = {"RGB": 3, "L": 1}  # Pillow's modes to which the engine decodes, and their channels


def chain_for(transform: Any, mode: str) -> transforms.Chain:
    """Returns the supported transforms at the start of `transform`, for images in `mode`."""
    dataset = sources.GivenFiles("images").dataset.decode(mode, apply_exif_orientation=True)
    return transforms.front_of(transform, dataset, MODES[mode])


class Function:
    """Has the same effect as a recognised function, for images as Arrow stores them: dicts with `bytes` and `path`.

    The object may be called in any process and thread. If the engine cannot read an image, datasets' own code reads it
    or raises an error.
    """

    def __init__(
        self, function: OfImages, batched: bool, mode: str | None, decode: Callable[[dict[str, Any]], Any]
    ) -> None:
        """`mode`: the Pillow mode of the function's images; None means each file's own mode. `decode`: datasets'
        own.
        """
        self._function, self._batched, self._mode, self._decode = function, batched, mode, decode
        self._readers = threading.local()  # by mode, one per process and thread

    def __call__(self, columns: dict[str, Any]) -> dict[str, Any]:
        function = self._function
        images = columns[function.image]
        made: Any = [self._made(image) for image in images] if self._batched else self._made(images)
        if function.stacks:
            made = torch.stack(made)
        if function.others is not None:
            return {name: made if column is None else columns[column] for name, column in function.names(())}
        columns[function.made] = made
        if not function.keeps_images:
            del columns[function.image]
        return columns

    def _made(self, image: Any) -> Any:
        data = b"" if image is None else image["bytes"] or b""
        mode = self._mode or _engine.pillow_mode_of(data)
        if data and mode in MODES:
            reader = self._reader(mode)
            try:
                value = reader.read_encoded(data) if reader.reads else None
            except Error:
                value = None
            if value is not None:
                return functools.reduce(lambda made, transform: transform(made), reader.rest, value)
        pillow: Any = None if image is None else self._decode(image)
        return self._function.transform(pillow.convert("RGB") if self._function.converts else pillow)

    def _reader(self, mode: str) -> Reader:
        readers: dict[str, Reader] = vars(self._readers)
        reader = readers.get(mode)
        if reader is None or reader.pid != os.getpid():
            chain = chain_for(self._function.transform, mode)
            reader = readers[mode] = Reader(sources.GivenFiles("images"), chain)
        return reader

    def __getstate__(self) -> tuple[Any, ...]:
        return self._function, self._batched, self._mode, self._decode

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]
