# SPDX-License-Identifier: Apache-2.0
"""Lowers webdataset's pipelines: the engine decodes images; shards, splitting, shuffling and grouping do not change.

    ... -> decode("pil", ...) -> [shuffle, to_tuple, rename] -> map_tuple(transform, ...) or map_dict(...) -> ...

becomes, in each worker,

    ... -> decode, images left encoded -> the same -> begin: the known transforms of every image natively,
        the others as webdataset decodes them -> map_tuple(rest of the transform, ...) -> ...

so that the order, splits, errors and random numbers in webdataset's own stages do not change. Images that decode()
converts to arrays or tensors ("rgb8", "torchrgb", "l") are decoded at the same stage as before.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..native import encoded_fields, shard_streams
from .datasets import image_handlers
from .transforms import transforms


@dataclass(frozen=True)
class Field:
    """The first function after decode that is applied to a field of the samples.

    Attributes:
        stage: index of the function's stage in the pipeline.
        place: index of the field in a tuple, or its key in a dict.
        name: name of the function, as shown by `explain()`.
        chain: the supported transforms of `function` if the field is an image.
    """

    stage: int
    place: int | str
    name: str
    function: Callable[[Any], Any]
    chain: transforms.Chain


@dataclass(frozen=True)
class Found:
    """The parts of a pipeline that the engine runs: supported transforms, or decoding to arrays.

    Attributes:
        decoders: the decode stages, by index.
        late: index of the decode stage that leaves images encoded; None if there is none.
        use: index of the stage before which the engine decodes images that were left encoded; 0 if there are none.
        fields: the functions applied to fields from stage `use` on, in order.
        why: the reason why Pillow decodes PIL images; empty if the engine decodes them.
    """

    decoders: dict[int, Any]
    late: int | None = None
    use: int = 0
    fields: tuple[Field, ...] = ()
    why: str = ""

    def handlers(self) -> list[Any]:
        """Returns the handlers of all decode stages that are not webdataset's defaults, in order."""
        autodecode = importlib.import_module("webdataset.autodecode")
        stock = [*autodecode.default_pre_handlers, *autodecode.default_post_handlers]
        return [h for d in self.decoders.values() for h in d.handlers if all(h is not known for known in stock)]


def is_pipeline(dataset: Any) -> bool:
    compat, pipeline = sys.modules.get("webdataset.compat"), sys.modules.get("webdataset.pipeline")
    if compat is None or pipeline is None:
        return False
    return type(dataset) in (compat.WebDataset, pipeline.DataPipeline)


# For pipelines without images, so webdataset decodes nothing that the engine could.
NO_IMAGES = "the pipeline does not decode images to RGB or L with a decoder that webdataset names"


def find(dataset: Any) -> Found | str:
    """Returns the parts of a pipeline that the engine runs, or why the engine does not decode images."""
    stages = dataset.pipeline
    decoders = {i: decoder for i, stage in enumerate(stages) if (decoder := _decoder(stage)) is not None}
    kinds = {i: set(map(image_handlers.kind_of, decoder.handlers)) for i, decoder in decoders.items()}
    arrays = any(image_handlers.ARRAYS in of for of in kinds.values())
    late = next((i for i, of in kinds.items() if image_handlers.PILLOW in of), None)
    if late is None:
        return Found(decoders) if arrays else NO_IMAGES
    found = _find_use(stages, decoders, late)
    if isinstance(found, str):
        return Found(decoders, why=found) if arrays else found
    return found


def _find_use(stages: list[Any], decoders: dict[int, Any], late: int) -> Found | str:
    """Returns the first stage that uses PIL images, with its functions."""
    filters = importlib.import_module("webdataset.filters")
    use = next((i for i in range(late + 1, len(stages)) if _functions(stages[i]) is not None), len(stages))
    for stage in stages[late + 1 : use]:
        if not _is_inert(stage, filters):
            return f"{_stage_name(stage)} may read decoded images"
    if use == len(stages):
        return "images are not transformed"
    shuffled = any(_is_shuffle(stage, filters) for stage in stages[late + 1 : use])
    if shuffled and _handler(stages[late]) is not filters.reraise_exception:
        return "a bad image is skipped before the shuffle"
    mode = next(mode for handler in decoders[late].handlers if (mode := image_handlers.pillow_mode(handler)))
    fields = _fields(stages, use, mode)
    if any(field.chain.known for field in fields):
        return Found(decoders, late, use, tuple(fields))
    reasons = [f"{field.name}: {field.chain.why}" if len(fields) > 1 else field.chain.why for field in fields]
    return "; ".join(reasons) or "images are not transformed"


def _fields(stages: list[Any], use: int, mode: str) -> list[Field]:
    """Returns the functions applied to the fields of samples from stage `use` on, up to the first stage of another
    kind.
    """
    names = _names(stages, use)
    fields: dict[int | str, Field] = {}
    for i in range(use, len(stages)):
        if _filter(stages[i]) is not _filter(stages[use]):
            break
        for place, function in (_functions(stages[i]) or {}).items():
            name = names[place] if isinstance(place, int) and place < len(names) else str(place)
            chain = image_handlers.chain_of(function, mode)
            fields.setdefault(place, Field(i, place, name, function, chain))
    return list(fields.values())


def _names(stages: list[Any], use: int) -> list[str]:
    """Returns the names of the members of the tuples that reach stage `use`."""
    filters = importlib.import_module("webdataset.filters")
    for stage in reversed(stages[:use]):
        if _filter(stage) is filters._to_tuple:
            return [str(name) for argument in stage.args for name in _split(argument)]
        if _filter(stage) is filters._extract_keys:
            return [str(pattern) for pattern in stage.args]
    return []


def _split(names: Any) -> list[Any]:
    return names.split() if isinstance(names, str) else [names]


def wrap(dataset: Any, every: bool = False) -> Any:
    """Returns a copy of `dataset` in which the engine replaces Pillow as planned by find(), and Feedline's client
    replaces curl if requested.

    every: whether Feedline's client reads all remote shards, or only those with a prefix in their URLs.
    """
    found = find(dataset)
    stages = shard_streams.with_native_reads(dataset.pipeline, every)
    if isinstance(found, str):
        return _with(dataset, stages)
    for i, decoder in found.decoders.items():
        stages[i] = _replaced_decode(stages[i], decoder, i == found.late)
    if found.late is not None:
        handler = _handler(dataset.pipeline[found.late])
        for i in range(found.late + 1, found.use):
            if not _is_shuffle(stages[i], importlib.import_module("webdataset.filters")):
                stages[i] = _image_errors_first(stages[i], handler)
        known = {field.place: field.function for field in found.fields if field.chain.known}
        for i in {field.stage for field in found.fields}:
            taken = {field.place for field in found.fields if field.stage == i}
            stages[i] = _with_rests(stages[i], known.keys() & taken)
        stages.insert(found.use, encoded_fields.Begin(known, handler))
    return _with(dataset, stages)


def _with(dataset: Any, stages: list[Any]) -> Any:
    same = copy.copy(dataset)
    same.pipeline = stages
    return same


def _replaced_decode(stage: Any, decoder: Any, late: bool) -> Any:
    """Returns a decode stage with the engine's handlers in place of webdataset's. `late`: whether PIL images stay
    encoded.
    """
    native = copy.copy(decoder)
    native.handlers = [encoded_fields.native_handler(handler, late) for handler in decoder.handlers]
    if late:
        native = encoded_fields.LateDecoder(native, decoder)
    if _filter(stage) is importlib.import_module("webdataset.filters")._decode:
        return encoded_fields.Decode(native, _handler(stage))
    same = copy.copy(stage)
    same.args = (native,)
    return same


def _with_rests(stage: Any, places: Any) -> Any:
    """Returns a map stage whose functions at `places` continue with the engine's result."""
    changed = copy.copy(stage)
    changed.args = tuple(encoded_fields.Rest(f) if i in places else f for i, f in enumerate(stage.args))
    changed.kw = {key: encoded_fields.Rest(f) if key in places else f for key, f in stage.kw.items()}
    return changed


def _image_errors_first(stage: Any, first: Any) -> Any:
    """Returns a stage after decode that raises decode's errors before its own errors. `first`: decode's handler."""
    filters = importlib.import_module("webdataset.filters")
    if _filter(stage) in (filters._rename_keys, filters._extract_keys):  # they raise none
        return encoded_fields.ImageErrorsFirst(stage, first, filters.reraise_exception)
    same = copy.copy(stage)
    same.kw = {key: value for key, value in stage.kw.items() if key != "handler"}
    return encoded_fields.ImageErrorsFirst(same, first, _handler(stage))


def _filter(stage: Any) -> Any:
    """Returns the function of one of webdataset's FilterFunctions; None for other stages."""
    filters = importlib.import_module("webdataset.filters")
    return stage.f if type(stage) is filters.FilterFunction else None


def _decoder(stage: Any) -> Any:
    """Returns the Decoder of a decode stage, which can be written in two ways; None for other stages."""
    filters = importlib.import_module("webdataset.filters")
    autodecode = importlib.import_module("webdataset.autodecode")
    run = _filter(stage)
    if run is filters._map and len(stage.args) == 1 and set(stage.kw) <= {"handler"}:
        decoder = stage.args[0]
    elif run is filters._decode:
        options = {key: value for key, value in stage.kw.items() if key != "handler"}
        try:
            handlers = [autodecode.ImageHandler(spec) if isinstance(spec, str) else spec for spec in stage.args]
            decoder = autodecode.Decoder(handlers, **options)
        except Exception:
            return None  # webdataset raises it again at the usual point
    else:
        return None
    return decoder if type(decoder) is autodecode.Decoder and not _is_altered(decoder) else None


def _is_altered(decoder: Any) -> bool:
    return bool(vars(decoder).keys() & {"decode", "decode1"})


def _handler(stage: Any) -> Any:
    return stage.kw.get("handler", importlib.import_module("webdataset.filters").reraise_exception)


def _functions(stage: Any) -> dict[int | str, Callable[[Any], Any]] | None:
    """Returns the functions of a map_tuple or map_dict by field; None for other stages."""
    filters = importlib.import_module("webdataset.filters")
    run = _filter(stage)
    if run is filters._map_tuple:
        return {i: f for i, f in enumerate(stage.args) if f is not None}
    if run is filters._map_dict:
        return {key: f for key, f in stage.kw.items() if key != "handler"}
    return None


def _is_inert(stage: Any, filters: Any) -> bool:
    """Returns whether a stage passes samples on one by one, without reading decoded fields."""
    if _is_shuffle(stage, filters):
        return True
    decoder = _decoder(stage)
    if decoder is not None:
        return bool(decoder.partial)
    if _filter(stage) is filters._rename:
        return not stage.args  # an argument would be a handler
    return _filter(stage) in (filters._to_tuple, filters._rename_keys, filters._extract_keys)


def _is_shuffle(stage: Any, filters: Any) -> bool:
    return _filter(stage) is filters._shuffle or type(stage) is filters.detshuffle


def _stage_name(stage: Any) -> str:
    run = _filter(stage)
    if _decoder(stage) is not None:
        return "decode"
    return str(getattr(run, "__name__", type(stage).__name__)).lstrip("_")
