# SPDX-License-Identifier: Apache-2.0
"""Stages of a webdataset pipeline, in a worker, that put images off until a transform is there for them.

Errors come as without them: what is wrong with an image is decode's error, given to decode's handler, and comes before
the errors of whatever follows decode.
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

from ...errors import Error
from ..known import sources, transforms
from .prefix import Reader

_EXTENSIONS = frozenset(("jpg", "jpeg", "png", "webp"))
_MODES = {"rgb": "RGB", "l": "L"}  # webdataset's words for what the engine decodes to, and the engine's
PILLOW, ARRAYS = "images of Pillow's", "arrays"


def kind_of(handler: Any) -> str | None:
    """What a decode handler makes that the engine makes too; None: it is nobody's business but its own."""
    autodecode = importlib.import_module("webdataset.autodecode")
    if type(handler) is not autodecode.ImageHandler:
        return None
    kind, _, mode = autodecode.imagespecs[handler.imagespec]
    if mode not in _MODES:
        return None
    return PILLOW if kind == "pil" else ARRAYS


def pillow_mode(handler: Any) -> str | None:
    """The mode of the images of Pillow's that a handler makes; None: it makes none."""
    if kind_of(handler) != PILLOW:
        return None
    autodecode = importlib.import_module("webdataset.autodecode")
    return _MODES[autodecode.imagespecs[handler.imagespec][2]]


def chain_of(function: Any, mode: str) -> transforms.Chain:
    """What the engine knows at the front of `function`, of images in `mode`."""
    dataset = sources.GivenFiles("WebDataset").dataset
    if mode == "RGB":  # which needs no word, and takes no place in front of what is random
        return transforms.chain_of(function, dataset)
    return transforms.chain_of(function, dataset.decode(mode), channels=1)


def native_handler(handler: Any, late: bool) -> Any:
    """What stands for a handler of decode's; `late`: images of Pillow's stay encoded."""
    kind = kind_of(handler)
    if kind == ARRAYS:
        return _Arrays(handler)
    return _Undecoded(handler) if late and kind == PILLOW else handler


class _Handler:
    """In the place of an ImageHandler, for files whose names say that the engine decodes them."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def __call__(self, key: str, data: bytes) -> Any:
        extension = key.rpartition(".")[2].lower()
        if extension in _EXTENSIONS and extension in self._handler.extensions:
            return self.take(key, data)
        return self._handler(key, data)

    def take(self, key: str, data: bytes) -> Any:
        raise NotImplementedError


class _Undecoded(_Handler):
    """Leaves images as they are."""

    def take(self, key: str, data: bytes) -> Encoded:
        return Encoded(key, data, self._handler)


class _Arrays(_Handler):
    """Gives the arrays and tensors that the handler gives, of pixels that the engine decoded."""

    def __init__(self, handler: Any) -> None:
        super().__init__(handler)
        self._readers = _Readers(self._reader)

    def take(self, key: str, data: bytes) -> Any:
        try:
            pixels = self._readers.get().pixels(data)
        except Error:  # the engine's word is not the last: Pillow may read it, or says what is wrong
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
        chain = transforms.Chain(files.dataset.decode(_MODES[mode]))
        return Reader(files, chain, "NCHW" if kind == "torch" else "NHWC")

    @staticmethod
    def _channels(kind: str) -> int:
        """The axis of an image's channels."""
        return 0 if kind == "torch" else 2


class Encoded:
    """An image that nobody has looked at yet.

    Attributes:
        field, sample: where decode found it, for its error.
    """

    __slots__ = ("data", "field", "handler", "key", "sample")

    def __init__(self, key: str, data: bytes, handler: Any) -> None:
        self.key, self.data, self.handler = key, data, handler
        self.field, self.sample = key.lstrip("."), None

    def decoded(self) -> Any:
        """As webdataset's handler gives it, or its error as its decoder raises it."""
        try:
            return self.handler(self.key, self.data)
        except Exception as error:
            sample: dict[str, Any] = self.sample or {}
            decoding_error = importlib.import_module("webdataset.autodecode").DecodingError
            raise decoding_error(
                key=sample.get("__key__"), url=sample.get("__url__"), k=self.field, sample=self.sample
            ) from error


class LateDecoder:
    """A Decoder some of whose images stay encoded, and know where they came from. `whole` decodes them, too."""

    def __init__(self, decoder: Any, whole: Any) -> None:
        self._decoder, self._whole = decoder, whole

    def __call__(self, sample: Any) -> Any:
        try:
            decoded = self._decoder(sample)
        except Exception:
            return self._whole(sample)  # whose first error may be an image's
        for field, value in decoded.items():
            if type(value) is Encoded:
                value.field, value.sample = field, sample
        return decoded


class Decode:
    """webdataset's functional decode stage, of a decoder that is there already."""

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


class Behind:
    """A stage that takes samples one by one, without looking at their images, and may refuse one.

    A sample with a bad image would not have come to it, so that error comes first.
    """

    def __init__(self, stage: Any, first: Callable[[Exception], bool], own: Callable[[Exception], bool]) -> None:
        self._stage, self._first, self._own = stage, first, own

    def __call__(self, samples: Iterable[Any]) -> Iterator[Any]:
        waiting: list[Any] = []  # the sample that the stage has

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
                if not waiting:  # of the stages before
                    raise
                bad = _first_error(waiting.pop())
                if not (self._own(error) if bad is None else self._first(bad)):
                    return


class Begin:
    """Decodes all images of a sample: natively as far as their transforms are known, or as webdataset does."""

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
    """What the engine knows at the front of a transform."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._readers = {mode: _Readers(functools.partial(self._reader, mode)) for mode in _MODES.values()}

    def __call__(self, image: Encoded) -> Any:
        mode = pillow_mode(image.handler)
        assert mode is not None
        try:
            reader = self._readers[mode].get()
            return Begun(reader.read_encoded(image.data), reader.rest)
        except Error:  # webdataset may read it, or says what is wrong
            return image.decoded()

    def _reader(self, mode: str) -> Reader:
        return Reader(sources.GivenFiles("WebDataset"), chain_of(self._function, mode))


class _Readers:
    """A reader for each process and thread that asks; `make` makes one. Pickled without them."""

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
    """An image as the engine left it, and the transforms that are still to come."""

    __slots__ = ("rest", "value")

    def __init__(self, value: Any, rest: tuple[Any, ...]) -> None:
        self.value, self.rest = value, rest


class Rest:
    """In the place of a transform: goes on where the engine stopped; all of it for other values."""

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
    """What decode would have said of the images of a sample."""
    for value in sample.values() if isinstance(sample, dict) else sample:
        if type(value) is Encoded:
            try:
                value.decoded()
            except Exception as error:
                return error
    return None
