# SPDX-License-Identifier: Apache-2.0
"""Stages of a webdataset pipeline in a worker that decode images only when the images reach a transform.

Errors are the same as without these stages: an image's error is raised as decode's error, passed to decode's handler,
and precedes errors in the stages after decode.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy
import torch

from ...data.image_formats import NATIVE_EXTENSIONS
from ...errors import Error
from ..lowering.datasets import image_handlers, sources
from ..lowering.datasets.image_handlers import MODES
from ..lowering.transforms import transforms
from .prefix import Reader


def native_handler(handler: Any, late: bool) -> Any:
    """Returns the engine's replacement for a decode handler. `late`: whether PIL images stay encoded."""
    kind = image_handlers.kind_of(handler)
    if kind == image_handlers.ARRAYS:
        return _Arrays(handler)
    return _Undecoded(handler) if late and kind == image_handlers.PILLOW else handler


class _Handler:
    """Replaces an ImageHandler for files whose names show that the engine decodes them."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def __call__(self, key: str, data: bytes) -> Any:
        extension = key.rpartition(".")[2].lower()
        if extension in NATIVE_EXTENSIONS and extension in self._handler.extensions:
            return self.take(key, data)
        return self._handler(key, data)

    def take(self, key: str, data: bytes) -> Any:
        raise NotImplementedError


class _Undecoded(_Handler):
    """Leaves images encoded."""

    def take(self, key: str, data: bytes) -> Encoded:
        return Encoded(key, data, self._handler)


class _Arrays(_Handler):
    """Returns arrays and tensors like the original handler, from pixels that the engine decoded."""

    def __init__(self, handler: Any) -> None:
        super().__init__(handler)
        self._readers = _Readers(self._reader)

    def take(self, key: str, data: bytes) -> Any:
        try:
            pixels = self._readers.get().pixels(data)
        except Error:  # Pillow may be able to read it, or raises its own error
            return self._handler(key, data)
        kind, dtype, mode = importlib.import_module("webdataset.autodecode").imagespecs[self._handler.imagespec]
        if mode == "l":
            pixels = pixels.reshape(
                [extent for axis, extent in enumerate(pixels.shape) if axis != self._channels(kind)]
            )
        if dtype == "float":
            pixels = pixels.astype(numpy.float32) / 255.0
        return torch.from_numpy(pixels) if kind == "torch" else pixels

    def _reader(self) -> Reader:
        kind, _, mode = importlib.import_module("webdataset.autodecode").imagespecs[self._handler.imagespec]
        files = sources.GivenFiles("WebDataset")
        chain = transforms.Chain(files.dataset.decode(MODES[mode]))
        return Reader(files, chain, "NCHW" if kind == "torch" else "NHWC")

    @staticmethod
    def _channels(kind: str) -> int:
        """Returns the axis of an image's channels."""
        return 0 if kind == "torch" else 2


class Encoded:
    """An encoded image that no transform has used yet.

    Attributes:
        field, sample: the field and the sample in which decode found the image, for use in an error.
    """

    __slots__ = ("data", "field", "handler", "key", "sample")

    def __init__(self, key: str, data: bytes, handler: Any) -> None:
        self.key, self.data, self.handler = key, data, handler
        self.field, self.sample = key.lstrip("."), None

    def decoded(self) -> Any:
        """Returns the result of webdataset's handler, or raises its error in the form of webdataset's decoder."""
        try:
            return self.handler(self.key, self.data)
        except Exception as error:
            sample: dict[str, Any] = self.sample or {}
            decoding_error = importlib.import_module("webdataset.autodecode").DecodingError
            raise decoding_error(
                key=sample.get("__key__"), url=sample.get("__url__"), k=self.field, sample=self.sample
            ) from error


class LateDecoder:
    """A Decoder that leaves some images encoded, and stores their origin. If decoding fails, `whole` decodes all images
    of the sample instead.
    """

    def __init__(self, decoder: Any, whole: Any) -> None:
        self._decoder, self._whole = decoder, whole

    def __call__(self, sample: Any) -> Any:
        try:
            decoded = self._decoder(sample)
        except Exception:
            return self._whole(sample)  # the first error may be an image's
        for field, value in decoded.items():
            if type(value) is Encoded:
                value.field, value.sample = field, sample
        return decoded


class Decode:
    """webdataset's functional decode stage for an existing decoder."""

    def __init__(self, decoder: Callable[[Any], Any], handler: Callable[[Exception], bool]) -> None:
        self._decoder, self._handler = decoder, handler

    def __call__(self, samples: Iterable[Any]) -> Iterator[Any]:
        for sample in samples:
            try:
                decoded = self._decoder(sample)
            except Exception as error:
                if self._handler(error):
                    continue
                return
            yield decoded


class ImageErrorsFirst:
    """A stage that processes samples one by one without reading their images, and may raise an error for a sample.

    In webdataset, a sample with a bad image would not reach the stage, so the image's error is raised first.
    """

    def __init__(self, stage: Any, first: Callable[[Exception], bool], own: Callable[[Exception], bool]) -> None:
        self._stage, self._first, self._own = stage, first, own

    def __call__(self, samples: Iterable[Any]) -> Iterator[Any]:
        waiting: list[Any] = []  # the sample in the stage

        def given() -> Iterator[Any]:
            for sample in samples:
                waiting.append(sample)
                yield sample
                waiting.clear()

        while True:
            try:
                yield from self._stage(given())
                return
            except Exception as error:
                if not waiting:  # an error of a previous stage
                    raise
                bad = _first_error(waiting.pop())
                if not (self._own(error) if bad is None else self._first(bad)):
                    return


class Begin:
    """Decodes all images of a sample, natively with their supported transforms, or as webdataset does."""

    def __init__(self, functions: dict[int | str, Any], handler: Callable[[Exception], bool]) -> None:
        self._fronts = {place: _Front(function) for place, function in functions.items()}
        self._handler = handler

    def __call__(self, samples: Iterable[Any]) -> Iterator[Any]:
        decoding_error = importlib.import_module("webdataset.autodecode").DecodingError
        for sample in samples:
            try:
                begun = self._begun(sample)
            except decoding_error as error:
                if self._handler(error):
                    continue
                return
            yield begun

    def _begun(self, sample: Any) -> Any:
        if isinstance(sample, dict):
            for key, value in sample.items():
                if type(value) is Encoded:
                    sample[key] = self._value(key, value)
            return sample
        return tuple(self._value(i, value) if type(value) is Encoded else value for i, value in enumerate(sample))

    def _value(self, place: int | str, image: Encoded) -> Any:
        front = self._fronts.get(place)
        return image.decoded() if front is None else front(image)


class _Front:
    """Applies the supported transforms with which a list of transforms begins."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._readers = {mode: _Readers(functools.partial(self._reader, mode)) for mode in MODES.values()}

    def __call__(self, image: Encoded) -> Any:
        mode = image_handlers.pillow_mode(image.handler)
        assert mode is not None
        try:
            reader = self._readers[mode].get()
            return Begun(reader.read_encoded(image.data), reader.rest)
        except Error:  # webdataset may be able to read it, or raises its own error
            return image.decoded()

    def _reader(self, mode: str) -> Reader:
        return Reader(sources.GivenFiles("WebDataset"), image_handlers.chain_of(self._function, mode))


class _Readers:
    """Creates a reader with `make` in each process and thread. The readers are not pickled."""

    def __init__(self, make: Callable[[], Reader]) -> None:
        self._make, self._local = make, threading.local()

    def get(self) -> Reader:
        reader = getattr(self._local, "reader", None)
        if reader is None or reader.pid != os.getpid():
            reader = self._local.reader = self._make()
        return reader

    def __getstate__(self) -> tuple[Any]:
        return (self._make,)

    def __setstate__(self, state: tuple[Any]) -> None:
        self._make, self._local = state[0], threading.local()


class Begun:
    """An image to which the engine has applied the supported transforms, and the transforms that remain."""

    __slots__ = ("rest", "value")

    def __init__(self, value: Any, rest: tuple[Any, ...]) -> None:
        self.value, self.rest = value, rest


class Rest:
    """Replaces a transform: applies the remaining transforms to images from the engine, and the whole transform to
    other values.
    """

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, value: Any) -> Any:
        if type(value) is not Begun:
            return self._function(value)
        sample = value.value
        for transform in value.rest:
            sample = transform(sample)
        return sample


def _first_error(sample: Any) -> Exception | None:
    """Returns the error that decode would have raised for the images of a sample; None if there is none."""
    for value in sample.values() if isinstance(sample, dict) else sample:
        if type(value) is Encoded:
            try:
                value.decoded()
            except Exception as error:
                return error
    return None
