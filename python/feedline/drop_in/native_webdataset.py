# SPDX-License-Identifier: Apache-2.0
"""webdataset's pipelines: shards, splitting, shuffling and grouping stay its own; images are decoded by the engine.

    ... -> decode("pil") -> [shuffle, to_tuple, rename] -> map_tuple(transform) or map_dict(jpg=transform) -> ...

becomes, in each worker,

    ... -> decode, images left encoded -> the same -> transform from the encoded image, natively as far as it is known

so that the order, the splits and the random numbers of webdataset's own stages are what they were.
"""

from __future__ import annotations

import copy
import importlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import Error
from . import sources, transforms
from .native_prefix import Reader

_SPECS = ("pil", "pilrgb")  # both give RGB images
_IMAGES = frozenset(("jpg", "jpeg", "png", "webp"))


@dataclass(frozen=True)
class Found:
    """Where images are decoded and transformed in a pipeline.

    Attributes:
        decode, transform: places of the two stages.
        chain: what the engine knows of the first transform that it knows anything of.
    """

    decode: int
    transform: int
    chain: transforms.Chain


def is_pipeline(dataset: Any) -> bool:
    compat, pipeline = sys.modules.get("webdataset.compat"), sys.modules.get("webdataset.pipeline")
    if compat is None or pipeline is None:
        return False
    return type(dataset) in (compat.WebDataset, pipeline.DataPipeline)


def find(dataset: Any) -> Found | str:
    """The images of a pipeline, or why the engine does not decode them."""
    stages = dataset.pipeline
    at = next((i for i, stage in enumerate(stages) if _decoder(stage) is not None), None)
    if at is None:
        return 'no decode("pil") or decode("pilrgb") without handlers of your own'
    filters = importlib.import_module("webdataset.filters")
    handler = _handler(stages[at], filters)
    shuffled = False
    for i in range(at + 1, len(stages)):
        stage = stages[i]
        functions = _functions(stage)
        if functions is None:
            if not _is_inert(stage, filters):
                return f"{_stage_name(stage)} may look at decoded images"
            shuffled = shuffled or _is_shuffle(stage, filters)
            continue
        known = [chain for chain in map(_chain, functions) if chain.known]
        if not known:
            return "no transform with images of one size that the engine knows"
        if _handler(stage, filters) is not handler:
            return "decode and the transform handle errors in different ways"
        if shuffled and handler is not filters.reraise_exception:
            return "a bad image is left out before the shuffle"
        return Found(at, i, known[0])
    return "images are not transformed"


def wrap(dataset: Any) -> Any:
    """`dataset`, with the engine in the place of Pillow where find() found one."""
    found = find(dataset)
    if isinstance(found, str):
        return dataset
    filters = importlib.import_module("webdataset.filters")
    stages = list(dataset.pipeline)
    decode, transform = stages[found.decode], stages[found.transform]
    decoder = copy.copy(_decoder(decode))
    decoder.handlers = [_Undecoded(h) if _is_image_handler(h) else h for h in decoder.handlers]
    stages[found.decode] = filters.FilterFunction(filters._map, decoder, handler=_handler(decode, filters))
    stages[found.transform] = filters.FilterFunction(
        transform.f,
        *(_replaced(f) for f in transform.args),
        **{key: value if key == "handler" else _replaced(value) for key, value in transform.kw.items()},
    )
    # Images that no transform was for come out as they would have.
    stages.insert(found.transform + 1, filters.FilterFunction(filters._map, _decode_rest))
    same = copy.copy(dataset)
    same.pipeline = stages
    return same


class Encoded:
    """An image that nobody has looked at yet."""

    __slots__ = ("data", "handler", "key")

    def __init__(self, key: str, data: bytes, handler: Any) -> None:
        self.key, self.data, self.handler = key, data, handler

    def decoded(self) -> Any:
        """As webdataset's handler gives it, or its error as its decoder raises it."""
        try:
            return self.handler(self.key, self.data)
        except Exception as error:
            decoding_error = importlib.import_module("webdataset.autodecode").DecodingError
            raise decoding_error(key=None, url=None, k=self.key.lstrip("."), sample=None) from error


class _Undecoded:
    """In the place of an ImageHandler: leaves what the engine decodes as it is."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def __call__(self, key: str, data: bytes) -> Any:
        extension = key.rpartition(".")[2].lower()
        if extension in _IMAGES and extension in self._handler.extensions:
            return Encoded(key, data, self._handler)
        return self._handler(key, data)


class NativeTransform:
    """In the place of a transform: from the encoded image where there is one."""

    def __init__(self, transform: Any) -> None:
        self._transform = transform
        self._readers = threading.local()  # one in each process and thread that reads

    def __call__(self, value: Any) -> Any:
        if type(value) is not Encoded:
            return self._transform(value)
        reader = getattr(self._readers, "reader", None)
        try:
            if reader is None or reader.pid != os.getpid():
                reader = self._readers.reader = Reader(sources.GivenFiles("WebDataset"), self._transform)
            sample = reader.read_encoded(value.data)
        except Error:  # the engine's word is not the last: webdataset may read it, or says what is wrong
            return self._transform(value.decoded())
        return reader.finish(sample)

    def __getstate__(self) -> tuple[Any]:
        return (self._transform,)

    def __setstate__(self, state: tuple[Any]) -> None:
        self._transform, self._readers = state[0], threading.local()


def _replaced(f: Any) -> Any:
    return NativeTransform(f) if callable(f) and _chain(f).known else f


def _decode_rest(sample: Any) -> Any:
    if isinstance(sample, dict):
        return {key: _plain(value) for key, value in sample.items()}
    if isinstance(sample, (tuple, list)):
        return type(sample)(_plain(value) for value in sample)
    return _plain(sample)


def _plain(value: Any) -> Any:
    return value.decoded() if type(value) is Encoded else value


def _chain(transform: Any) -> transforms.Chain:
    return transforms.fixed_size_front(transform, sources.GivenFiles("WebDataset").dataset)


def _filter(stage: Any) -> Any:
    """What a FilterFunction of webdataset runs; None for other stages."""
    filters = importlib.import_module("webdataset.filters")
    return stage.f if type(stage) is filters.FilterFunction else None


def _decoder(stage: Any) -> Any:
    """The Decoder of a decode stage that makes RGB images of Pillow's, in either of the two ways to write one."""
    filters = importlib.import_module("webdataset.filters")
    autodecode = importlib.import_module("webdataset.autodecode")
    run = _filter(stage)
    if run is filters._map and len(stage.args) == 1 and set(stage.kw) <= {"handler"}:
        decoder = stage.args[0]
    elif run is filters._decode and all(isinstance(spec, str) for spec in stage.args):
        options = {key: value for key, value in stage.kw.items() if key != "handler"}
        decoder = autodecode.Decoder([autodecode.ImageHandler(spec) for spec in stage.args], **options)
    else:
        return None
    if type(decoder) is not autodecode.Decoder:
        return None
    images = [handler for handler in decoder.handlers if type(handler) is autodecode.ImageHandler]
    return decoder if images and all(handler.imagespec in _SPECS for handler in images) else None


def _is_image_handler(handler: Any) -> bool:
    return type(handler) is importlib.import_module("webdataset.autodecode").ImageHandler


def _handler(stage: Any, filters: Any) -> Any:
    return stage.kw.get("handler", filters.reraise_exception)


def _functions(stage: Any) -> list[Callable[[Any], Any]] | None:
    """The functions that a map_tuple or map_dict applies to fields; None for other stages."""
    filters = importlib.import_module("webdataset.filters")
    run = _filter(stage)
    if run is filters._map_tuple:
        return [f for f in stage.args if f is not None]
    if run is filters._map_dict:
        return [f for key, f in stage.kw.items() if key != "handler"]
    return None


def _is_inert(stage: Any, filters: Any) -> bool:
    """Whether a stage hands samples on without looking into their fields."""
    if _is_shuffle(stage, filters):
        return True
    return _filter(stage) in (filters._to_tuple, filters._rename, filters._rename_keys)


def _is_shuffle(stage: Any, filters: Any) -> bool:
    return _filter(stage) is filters._shuffle or type(stage) is filters.detshuffle


def _stage_name(stage: Any) -> str:
    run = _filter(stage)
    return str(getattr(run, "__name__", type(stage).__name__)).lstrip("_")
