# SPDX-License-Identifier: Apache-2.0
"""Which of torchvision's transforms the engine has, by exact type, and with which arguments.

A transform is taken where it does on a PIL image what the engine's operation of the same name does. An argument that
the engine does not have makes the transform unknown, in the engine's own words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..data.dataset import Dataset
from ..errors import ConfigError

# What flows between two transforms.
PIL, BYTES, FLOATS = "a PIL image", "a uint8 tensor", "a float32 tensor"
_V1 = "torchvision.transforms.transforms"


@dataclass(frozen=True)
class Chain:
    """The known transforms at the front of a list, as operations on a dataset; `rest` are the others."""

    dataset: Dataset
    known: tuple[str, ...] = ()
    flows: str = PIL  # what comes out of the known ones
    channels: int = 3
    random: bool = False  # one of the known ones draws random numbers
    tv_image: bool = False  # and it is a torchvision.tv_tensors.Image
    rest: tuple[Any, ...] = ()
    why: str = ""  # the first of `rest` is not known


def chain_of(transform: Any, dataset: Dataset, channels: int = 3) -> Chain:
    """All that the engine knows at the front of `transform`, a Compose or one transform, on `dataset`'s images."""
    members = _members(transform)
    chain = Chain(dataset, channels=channels)
    for i, member in enumerate(members):
        longer = _taken(chain, member)
        if isinstance(longer, str):
            return replace(chain, rest=tuple(members[i:]), why=longer)
        chain = longer
    return chain


def fixed_size_front(transform: Any, dataset: Dataset) -> Chain:
    """As much of chain_of() as ends with images of one size; no transform is known where there is no such front."""
    members = _members(transform)
    chain = Chain(dataset)
    best = replace(chain, rest=tuple(members), why="images have no fixed size")
    for i, member in enumerate(members):
        longer = _taken(chain, member)
        if isinstance(longer, str):
            return replace(best, why=longer) if best.known == chain.known else best
        chain = longer
        if has_fixed_size(chain.dataset):
            best = replace(chain, rest=tuple(members[i + 1 :]))
    return best


def has_fixed_size(dataset: Dataset) -> bool:
    """Whether all images come out of `dataset` with one size, whatever they were."""
    try:
        return bool(dataset.schema)
    except ConfigError:
        return False


def _members(transform: Any) -> list[Any]:
    """The transforms in a Compose of exactly that type, nested ones too; else the transform itself."""
    if transform is None:
        return []
    if _name(transform) != "Compose" or _is_altered(transform):
        return [transform]
    return [member for inner in transform.transforms for member in _members(inner)]


def _taken(chain: Chain, transform: Any) -> Chain | str:
    """`chain` with `transform` behind it, or why the engine cannot do that."""
    name = _name(transform)
    if name is None or name not in _KNOWN:
        return f"{name_of(transform)} is not an operation of the engine"
    if _is_altered(transform):
        return f"{name} has hooks, or a forward of its own"
    takes, apply, gives = _KNOWN[name]
    if chain.flows not in takes:
        return f"{name} of {chain.flows} is not an operation of the engine"
    try:
        dataset = apply(chain, transform)
    except (ConfigError, TypeError, ValueError, AttributeError) as error:
        return str(error)
    channels = transform.num_output_channels if name == "Grayscale" else chain.channels
    tv_image = name == "ToImage" or (chain.tv_image and name != "ToPureTensor")
    if chain.tv_image and type(transform).__module__ == _V1:  # which turn what they change into plain tensors
        if name.startswith("Random"):
            return f"{name} of {_V1} behind v2.ToImage gives now an Image, now a tensor"
        tv_image = False
    return replace(
        chain,
        dataset=dataset,
        known=(*chain.known, name),
        flows=gives or chain.flows,
        channels=channels,
        random=chain.random or name.startswith("Random") or name == "ColorJitter",
        tv_image=tv_image,
    )


def name_of(transform: Any) -> str:
    """As it is shown: a function's own name, or the class of an object."""
    return str(getattr(transform, "__name__", type(transform).__qualname__))


def _name(transform: Any) -> str | None:
    """The name of an exact torchvision class, v1 or v2; None for anything else."""
    kind = type(transform)
    for module in (_V1, "torchvision.transforms.v2"):
        loaded = sys.modules.get(module)
        if loaded is not None and getattr(loaded, kind.__name__, None) is kind:
            return kind.__name__
    return None


def _is_altered(transform: Any) -> bool:
    """Whether this one object does not do what its class does."""
    own = vars(transform)
    if "forward" in own or "__call__" in own or "transform" in own:
        return True
    return any(own.get(hooks) for hooks in ("_forward_hooks", "_forward_pre_hooks"))


# -- one function for each transform


def _resize(chain: Chain, t: Any) -> Dataset:
    return chain.dataset.resize(t.size, t.interpolation, t.max_size)


def _center_crop(chain: Chain, t: Any) -> Dataset:
    return chain.dataset.center_crop(t.size)


def _random_crop(chain: Chain, t: Any) -> Dataset:
    return chain.dataset.random_crop(t.size, t.padding, t.pad_if_needed, _fill(t.fill), t.padding_mode)


def _random_resized_crop(chain: Chain, t: Any) -> Dataset:
    return chain.dataset.random_resized_crop(t.size, t.scale, t.ratio, t.interpolation)


def _random_horizontal_flip(chain: Chain, t: Any) -> Dataset:
    return chain.dataset.random_horizontal_flip(t.p)


def _random_vertical_flip(chain: Chain, t: Any) -> Dataset:
    return chain.dataset.random_vertical_flip(t.p)


def _pad(chain: Chain, t: Any) -> Dataset:
    return chain.dataset.pad(t.padding, _fill(t.fill), t.padding_mode)


def _grayscale(chain: Chain, t: Any) -> Dataset:
    return chain.dataset.grayscale(t.num_output_channels)


def _color_jitter(chain: Chain, t: Any) -> Dataset:
    ranges = [0 if r is None else tuple(r) for r in (t.brightness, t.contrast, t.saturation, t.hue)]
    return chain.dataset.color_jitter(*ranges)


def _to_float(chain: Chain, t: Any) -> Dataset:
    _require_float32(torch.get_default_dtype())  # which is what ToTensor gives
    return chain.dataset.to_dtype("float32", scale=True)


def _to_tensor(chain: Chain, t: Any) -> Dataset:
    return chain.dataset


def _convert(chain: Chain, t: Any) -> Dataset:
    _require_float32(t.dtype)
    return chain.dataset.to_dtype("float32", scale=True)


def _to_dtype(chain: Chain, t: Any) -> Dataset:
    _require_float32(t.dtype)
    return chain.dataset.to_dtype("float32", scale=bool(t.scale))


def _normalize(chain: Chain, t: Any) -> Dataset:
    mean, std = (_channel_values(values, chain.channels) for values in (t.mean, t.std))
    return chain.dataset.normalize(mean, std)


def _require_float32(dtype: Any) -> None:
    if dtype is not torch.float32:
        raise ConfigError(f"the engine converts to torch.float32 here, not to {dtype}")


def _channel_values(values: Any, channels: int) -> list[float]:
    numbers = [float(value) for value in values]
    return numbers * channels if len(numbers) == 1 else numbers


def _fill(fill: Any) -> Any:
    if isinstance(fill, dict):
        raise ConfigError(f"fill={fill!r} is not one value, or one for each channel")
    if isinstance(fill, Sequence) and len(fill) == 1:
        return fill[0]
    return 0 if fill is None else fill


_Apply = Callable[[Chain, Any], Dataset]
# name -> what it takes, the operation, what it gives (None: what it takes). Behind ToTensor torchvision resamples and
# colours tensors, with other rounding than PIL images have: only what moves no value is the same there.
_KNOWN: dict[str, tuple[tuple[str, ...], _Apply, str | None]] = {
    "Resize": ((PIL,), _resize, None),
    "CenterCrop": ((PIL,), _center_crop, None),
    "RandomCrop": ((PIL,), _random_crop, None),
    "RandomResizedCrop": ((PIL,), _random_resized_crop, None),
    "RandomHorizontalFlip": ((PIL, BYTES, FLOATS), _random_horizontal_flip, None),
    "RandomVerticalFlip": ((PIL, BYTES, FLOATS), _random_vertical_flip, None),
    "Pad": ((PIL,), _pad, None),
    "Grayscale": ((PIL,), _grayscale, None),
    "ColorJitter": ((PIL,), _color_jitter, None),
    "ToTensor": ((PIL,), _to_float, FLOATS),
    "PILToTensor": ((PIL,), _to_tensor, BYTES),
    "ToImage": ((PIL,), _to_tensor, BYTES),
    "ConvertImageDtype": ((BYTES,), _convert, FLOATS),
    "ToDtype": ((BYTES,), _to_dtype, FLOATS),
    "Normalize": ((FLOATS,), _normalize, FLOATS),
    "ToPureTensor": ((BYTES, FLOATS), _to_tensor, None),
    "Identity": ((PIL, BYTES, FLOATS), _to_tensor, None),
}
