# SPDX-License-Identifier: Apache-2.0
"""Finds the transforms in a list that the engine supports, by exact type and arguments."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from ....data.dataset import Dataset
from ....data.draws import is_random
from ....data.ops.chain import chain as operations
from ....errors import ConfigError
from . import crop_functions, transformers_processors
from .chains import ARRAY, BYTES, FLOATS, PIL, TUPLE, Chain, Family, Known, is_altered
from .open_clip_transforms import OPEN_CLIP
from .timm_transforms import TIMM
from .torchvision_transforms import TORCHVISION, is_v1

__all__ = [
    "ARRAY",
    "BYTES",
    "FLOATS",
    "PIL",
    "TUPLE",
    "Chain",
    "Run",
    "chain_of",
    "chain_of_members",
    "front_of",
    "is_known",
    "members_of",
    "runs_of",
]

_FAMILIES = (TORCHVISION, TIMM, OPEN_CLIP)
# Packages whose transforms are named with the package if they stay in Python.
_PACKAGES = ("albumentations", "imgaug", "kornia", "monai", "open_clip", "timm", "transformers")
# Transforms too cheap to pass an image to the engine or back: before unknown ones, and after them.
_LIGHT = frozenset(
    (
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "Pad",
        "RGB",
        "Identity",
        "ToPureTensor",
        "_convert_to_rgb",
        "MaybeConvertMode",
    )
)
_TOO_LIGHT = "the transform takes less time than passing the image to the engine"
_LIGHT_AFTERWARDS = _LIGHT | {"CenterCrop", "RandomCrop", "CenterCropOrPad"}


@dataclass(frozen=True)
class Run:
    """Consecutive transforms that run in the same way: natively as `chain`, or in Python (`chain` is None) for the
    reason `why`.
    """

    transforms: tuple[Any, ...]
    chain: Chain | None = None
    why: str = ""


def chain_of(transform: Any, dataset: Dataset, channels: int = 3) -> Chain:
    """Returns a chain of all supported transforms at the start of `transform` (a list or one transform), for images of
    `dataset`.
    """
    return chain_of_members(members_of(transform), Chain(dataset, channels=channels))


def front_of(transform: Any, dataset: Dataset, channels: int = 3) -> Chain:
    """Returns chain_of() if running the chain in the engine saves more time than passing the result to Python costs;
    otherwise returns an empty chain.
    """
    chain = chain_of(transform, dataset, channels)
    if not chain.rest or not _LIGHT.issuperset(chain.known):
        return chain
    return Chain(dataset, channels=channels, rest=tuple(members_of(transform)), why=chain.why)


def runs_of(chain: Chain, dataset: Dataset) -> list[Run]:
    """Returns how each part of a chain's rest runs: in Python, or natively if the part starts from a PIL image.

    Args:
        dataset: a dataset with the same images, before any operation.
    """
    runs: list[Run] = []
    rest, flows, why = chain.rest, chain.flows, chain.why if chain.known else ""
    while rest:
        following = chain_of_members(rest, Chain(dataset, flows=flows)) if not why else None
        if following is not None and not _LIGHT_AFTERWARDS.issuperset(following.known):
            runs.append(Run(rest[: len(rest) - len(following.rest)], following))
            rest, flows, why = following.rest, following.flows, following.why
            continue
        if following is not None:
            why = _TOO_LIGHT if following.known else following.why
        runs.append(Run(rest[:1], None, why))
        rest, why = rest[1:], "" if flows == PIL else "comes after"  # it may have returned a tensor for a tensor
    return runs


def has_fixed_size(dataset: Dataset) -> bool:
    """Returns whether all images of `dataset` have the same size after its operations."""
    try:
        schema = dataset.schema
    except ConfigError:
        return False
    return bool(schema) and all(-1 not in spec.shape for spec in schema.values())


def name_of(transform: Any) -> str:
    """Returns the displayed name of a transform: the name of the function or of the object's class."""
    return str(getattr(transform, "__name__", type(transform).__qualname__))


def is_known(transform: Any) -> bool:
    """Returns whether the engine supports the transform's class or function, regardless of arguments."""
    return _known(transform) is not None and not is_altered(transform)


def members_of(transform: Any) -> list[Any]:
    """Returns the transforms in a list or, recursively, in a recognised container; returns any other transform as a
    list with one element.
    """
    if transform is None:
        return []
    if type(transform) is list:
        return transform
    if not _is_list(transform) or is_altered(transform):
        return [transform]
    inner = transform if type(transform) is nn.Sequential else transform.transforms
    return [member for part in inner for member in members_of(part)]


def _is_list(transform: Any) -> bool:
    if type(transform) is nn.Sequential:
        return True
    return type(transform).__name__ == "Compose" and _is_in(TORCHVISION, transform)


def chain_of_members(members: Sequence[Any], chain: Chain) -> Chain:
    """Returns `chain` extended by as many of the first `members` as are supported; the other members become the chain's
    rest.
    """
    members = [member for listed in members for member in members_of(listed)]
    for i, member in enumerate(members):
        longer = _taken(chain, member)
        if isinstance(longer, str):
            return replace(chain, rest=tuple(members[i:]), why=longer)
        chain = longer
    return chain


def _taken(chain: Chain, transform: Any) -> Chain | str:
    """Returns `chain` extended by `transform`, or why the engine does not support the transform."""
    if chain.crops:
        stacked = crop_functions.stacked(chain, transform, chain_of_members)
        if stacked is not None:
            return stacked
    known = _known(transform)
    if known is None:
        return _foreign(transform)
    name = known.name or name_of(transform)
    if is_altered(transform):
        return f"{name} has hooks, or its own forward()"
    if chain.flows not in known.takes:
        return f"{name} of {chain.flows} is not supported by the engine"
    if chain.crops and not crop_functions.is_for_each(chain, transform, name):
        return f"{name} of crops as {chain.crops} is not supported by the engine"
    try:
        inner = [_nested(chain, transform, members) for members in known.members(transform)] if known.members else []
        dataset: Any = known.apply(chain, transform, *inner)
    except (ConfigError, TypeError, ValueError, IndexError, AttributeError) as error:
        return str(error)
    added = dataset.operations[len(chain.dataset.operations) :]
    tv_image = name == "ToImage" or (chain.tv_image and name != "ToPureTensor")
    if chain.tv_image and is_v1(transform):  # which convert changed images to plain tensors
        if name.startswith("Random"):
            return f"{name} of torchvision.transforms after v2.ToImage returns an Image or a tensor"
        tv_image = False
    return replace(
        chain,
        dataset=dataset,
        known=(*chain.known, name),
        drawn=(*chain.drawn, any(map(is_random, added))),
        flows=known.gives or chain.flows,
        channels=chain.channels if known.channels is None else known.channels(transform),
        tv_image=tv_image,
        crops=known.crops or chain.crops,
    )


def _nested(chain: Chain, transform: Any, members: list[Any]) -> Any:
    """Returns the members as a separate chain, whose result has the type of its input."""
    name = type(transform).__name__
    inner = chain_of_members(members, replace(chain, dataset=operations(), known=(), drawn=()))
    if inner.rest:
        raise ConfigError(f"{name}: {inner.why}")
    if (inner.flows, inner.channels, inner.tv_image) != (chain.flows, chain.channels, chain.tv_image):
        raise ConfigError(f"{name} returns {chain.flows} or a different kind of image")
    return inner.dataset


def _known(transform: Any) -> Known | None:
    """Returns the entry for an exact class or a function of a known package; otherwise None."""
    for family in _FAMILIES:
        known = family.known.get(name_of(transform))
        if known is not None and _is_in(family, transform):
            return known
    return transformers_processors.known_of(transform)


def _is_in(family: Family, transform: Any) -> bool:
    thing = transform if isinstance(transform, types.FunctionType) else type(transform)
    modules = (sys.modules.get(name) for name in family.modules)
    return any(module is not None and getattr(module, thing.__name__, None) is thing for module in modules)


def _foreign(transform: Any) -> str:
    package = str(getattr(transform, "__module__", "")).partition(".")[0]
    of = f" of {package}" if package in _PACKAGES else ""
    return f"{name_of(transform)}{of} is not supported by the engine"
