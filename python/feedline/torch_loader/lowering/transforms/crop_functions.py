# SPDX-License-Identifier: Apache-2.0
"""Recognises functions that stack the crops of torchvision's FiveCrop and TenCrop, and transforms that process all
crops in the same way.

torchvision's documentation uses `Lambda(lambda crops: torch.stack([ToTensor()(crop) for crop in crops]))`. Functions
are recognised by their bytecode, and must call transforms that the engine supports for each crop.
"""

from __future__ import annotations

import functools
import itertools
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from . import function_templates
from .chains import PIL, STACKED, TUPLE, Chain, is_altered
from .torchvision_transforms import is_v1

_V1 = "torchvision.transforms.transforms"
# v2's transforms that treat each element of a tuple alike.
_OF_EACH = frozenset(
    ("ToImage", "PILToTensor", "ToDtype", "ConvertImageDtype", "Normalize", "ToPureTensor", "Identity")
)
# Transforms with the same effect on a tensor of crops as on each of them.
_OF_ALL = frozenset(("ToDtype", "ConvertImageDtype", "Normalize", "ToPureTensor", "Identity"))
_FUNCTIONS = {
    "to_tensor": "ToTensor",
    "pil_to_tensor": "PILToTensor",
}  # torchvision's functions, and the classes that call them

_MADE_WITHOUT_ARGUMENTS = ("ToTensor", "PILToTensor", "ToImage")

ChainOf = Callable[[Any, Chain], Chain]


def is_for_each(chain: Chain, transform: Any, name: str) -> bool:
    """Returns whether applying a supported transform to all crops of `chain` at once has the same effect as applying it
    to each crop.
    """
    if chain.crops == STACKED:
        return name in _OF_ALL
    if is_v1(transform) or not type(transform).__module__.startswith("torchvision.transforms.v2"):
        return False
    # v2 changes only the first of plain tensors
    return name in _OF_EACH and (chain.flows == PIL or chain.tv_image)


def stacked(chain: Chain, transform: Any, chain_of: ChainOf) -> Chain | str | None:
    """Returns `chain` extended with a function that stacks its crops, or the reason why this is not supported; None if
    `transform` is not such a function.

    Args:
        chain_of: a function that extends a chain with transforms.
    """
    function = _function_in(transform)
    steps = None if function is None else _steps_in(function, chain.crops)
    if function is None or steps is None:
        return None
    name = str(getattr(transform, "__name__", type(transform).__name__))
    each = chain_of(steps, replace(chain, crops="", known=(), drawn=()))
    if each.rest:
        return f"{name}: {each.why}"
    if each.flows == PIL:
        return f"{name} stacks PIL images"
    what = f"{name}: {', '.join((*each.known, 'stack'))}"
    known, drawn = (*chain.known, what), (*chain.drawn, any(each.drawn))
    return replace(each, known=known, drawn=drawn, crops=STACKED, tv_image=False)


def _function_in(transform: Any) -> Any:
    """Returns the function that is called with all crops: the function of a v1 Lambda (a v2 Lambda receives one crop at
    a time), or `transform` itself.
    """
    kind = getattr(sys.modules.get(_V1), "Lambda", None)
    if kind is not None and type(transform) is kind:
        return None if is_altered(transform) else transform.lambd
    return transform


def _steps_in(transform: Any, crops: str) -> list[Any] | None:
    """Returns the transforms that a function applies to each crop; None for other functions."""
    if transform is torch.stack:
        return [] if crops == TUPLE else None
    read = function_templates.read(transform)
    if read is None:
        return None
    for template, called, needs_tuple in _templates():
        found = read.values(template, _MARKERS[: len(called)])
        if found is not None and not (needs_tuple and crops != TUPLE):
            steps = [_made(value, is_called) for value, is_called in zip(found, called, strict=True)]
            return None if any(step is None for step in steps) else steps
    return None


def _made(value: Any, is_called: bool) -> Any:
    """Returns the transform that is called with a crop; None for other values."""
    if is_called:
        return value() if isinstance(value, type) and _is_of_torchvision(value) else None
    functional = sys.modules.get("torchvision.transforms.functional")
    name = getattr(value, "__name__", "")
    if name in _FUNCTIONS and getattr(functional, name, None) is value:
        return getattr(sys.modules[_V1], _FUNCTIONS[name])()
    return None if isinstance(value, type) else value


def _is_of_torchvision(kind: type) -> bool:
    return kind.__module__.startswith("torchvision.transforms.") and kind.__name__ in _MADE_WITHOUT_ARGUMENTS


# -- the functions that are known

_MARKERS = (object(), object())  # placeholders for transforms


@functools.cache
def _templates() -> tuple[tuple[types.FunctionType, tuple[bool, ...], bool], ...]:
    """Returns (function, whether the function constructs each of its transforms, whether it accepts only a tuple) for
    each template.

    The templates are the forms in torchvision's documentation, with one or two transforms for each crop.
    """
    names = {**dict(zip("AB", _MARKERS, strict=True)), "torch": torch}
    made: list[tuple[types.FunctionType, tuple[bool, ...], bool]] = [
        (eval("lambda crops: torch.stack(crops)", names), (), True)
    ]
    for called in (parts for count in (1, 2) for parts in itertools.product((False, True), repeat=count)):
        crop = "crop"
        for name, is_called in zip("AB", called, strict=False):
            crop = f"{name}{'()' if is_called else ''}({crop})"
        made.append((eval(f"lambda crops: torch.stack([{crop} for crop in crops])", names), called, False))
    return tuple(made)
