# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's image processors for tensors (TorchvisionBackend in transformers 5), used as transforms.

A processor is supported if its class overrides no method of that backend, as is the case for ViT, CLIP, SigLIP, DeiT,
BLIP and BiT (used by DINOv2). The backend resizes like torch, crops the centre, and rescales and normalizes in one
step. The transform is either the processor itself, or a function that returns the pixels of the processor's result.
"""

from __future__ import annotations

import functools
import itertools
import sys
import types
from typing import Any

import torch

from ....errors import ConfigError
from . import function_templates
from .chains import FLOATS, PIL, Chain, Known
from .torchvision_transforms import resizes_uint8

_BACKENDS = "transformers.image_processing_backends"
_METHODS = (types.FunctionType, staticmethod, classmethod, property)
_SHAPES = ("longest_edge", "max_height", "max_width", "min_pixels", "max_pixels")  # other ways to specify sizes
_BY_NUMBER = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers


def is_processor(thing: Any) -> bool:
    backend = _backend()
    return backend is not None and isinstance(thing, backend)


def batch_feature() -> Any:
    """Returns the class of processors' results."""
    return sys.modules[_BACKENDS].BatchFeature  # type: ignore[attr-defined]


def known_of(transform: Any) -> Known | None:
    """Returns the entry for a function that returns the pixels of a processor's result; None for other functions."""
    if _backend() is None:
        return None
    processor = _processor_in(transform)
    if not is_processor(processor):
        return None
    return Known((PIL,), lambda chain, _: applied(chain, processor), FLOATS, name=type(processor).__name__)


def applied(chain: Chain, processor: Any) -> Any:
    """Returns the operations that `processor` applies to an image.

    Raises:
        ConfigError: the engine does not support one of the operations.
    """
    name = type(processor).__name__
    _check_class(processor)
    refused = {
        "do_pad": bool(processor.do_pad),
        "device": processor.device is not None and torch.device(processor.device).type != "cpu",
        "return_tensors": processor.return_tensors is not None,
        "input_data_format": processor.input_data_format is not None,
        "do_rescale": not processor.do_rescale,
        "do_normalize": not processor.do_normalize,
    }
    for option, is_refused in refused.items():
        if is_refused:
            raise ConfigError(f"{name} with {option}={getattr(processor, option)!r} is not supported by the engine")
    if chain.channels != 3:
        raise ConfigError(f"{name} of a grey image is not supported by the engine")
    dataset = chain.dataset
    if processor.do_resize:
        dataset = dataset.resize(_edges(name, processor.size), _interpolation(name, processor.resample))
    if processor.do_center_crop:
        size = processor.crop_size
        dataset = dataset.center_crop((_edge(name, size.height), _edge(name, size.width)), rounding="down")
    mean, std = (_of_bytes(values, processor.rescale_factor) for values in (processor.image_mean, processor.image_std))
    return dataset.to_dtype("float32").normalize(mean, std)


def _backend() -> Any:
    """Returns the backend's class; None if the class is not imported or does not exist in this version of
    transformers.
    """
    return getattr(sys.modules.get(_BACKENDS), "TorchvisionBackend", None)


def _check_class(processor: Any) -> None:
    kind = type(processor)
    own = [name for name, value in vars(kind).items() if isinstance(value, _METHODS) and name != "__init__"]
    own += [name for name, value in vars(processor).items() if callable(value) and hasattr(kind, name)]
    if kind.__mro__[1] is not _backend() or own:
        raise ConfigError(f"{kind.__name__} overrides methods: {', '.join(own) or 'its base'}")


def _edge(name: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name} has an invalid size of {value!r} pixels")
    return value


def _edges(name: str, size: Any) -> Any:
    if any(getattr(size, shape, None) for shape in _SHAPES):
        raise ConfigError(f"{name} with size={dict(size)!r} is not supported by the engine")
    if size.shortest_edge:
        return _edge(name, size.shortest_edge)
    return _edge(name, size.height), _edge(name, size.width)


def _interpolation(name: str, resample: Any) -> str:
    value = getattr(resample, "value", resample)
    word = "bilinear" if value is None else _BY_NUMBER.get(value, value)
    if not resizes_uint8(word):
        raise ConfigError(f"{name} with resample={resample!r} is not supported by the engine")
    return f"torch_{word}"


def _of_bytes(values: Any, factor: float) -> list[float]:
    """Converts statistics to those for pixels that were not rescaled, in float32 arithmetic like the backend."""
    made: list[float] = (torch.tensor(values) * (1.0 / factor)).reshape(-1).tolist()
    return made * 3 if len(made) == 1 else made


# -- the functions that are known

_PROCESSOR: Any = object()  # placeholder for a processor


@functools.cache
def _templates() -> tuple[types.FunctionType, ...]:
    calls = ("P(", "P.preprocess(")
    images = [f"{name}image{converted}" for name in ("", "images=") for converted in ("", '.convert("RGB")')]
    pixels = ('["pixel_values"]', ".pixel_values")
    ends = [(', return_tensors="pt")', first) for first in ("[0]", ".squeeze(0)", ".squeeze()")] + [(")", "[0]")]
    texts = itertools.product(calls, images, ends, pixels)
    return tuple(
        eval(f"lambda image: {call}{image}{end}{got}{first}", {"P": _PROCESSOR})
        for call, image, (end, first), got in texts
    )


def _processor_in(transform: Any) -> Any:
    read = function_templates.read(transform)
    if read is None:
        return None
    found = (read.value(template, _PROCESSOR) for template in _templates())
    return next((value for value in found if value is not None), None)
