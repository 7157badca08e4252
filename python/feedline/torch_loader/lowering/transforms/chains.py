# SPDX-License-Identifier: Apache-2.0
"""Chains of supported transforms: their operations on a dataset, and the type of their result."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....data.ops.augmentations import Augmentations
from ....errors import ConfigError

# The types passed between two transforms.
PIL, BYTES, FLOATS, ARRAY = "a PIL image", "a uint8 tensor", "a float32 tensor", "a uint8 array"
# The containers of several of these.
TUPLE, STACKED = "a tuple", "one tensor"


@dataclass(frozen=True)
class Chain:
    """The supported transforms at the start of a list, as operations on a dataset; `rest` contains the other
    transforms.
    """

    dataset: Any  # Dataset, or a chain() without one
    known: tuple[str, ...] = ()
    drawn: tuple[bool, ...] = ()  # for each known transform, whether it draws random numbers
    flows: str = PIL  # the type of the known transforms' result
    channels: int = 3
    tv_image: bool = False  # the result is a torchvision.tv_tensors.Image
    crops: str = ""  # the result is several of them, as TUPLE or STACKED
    rest: tuple[Any, ...] = ()
    why: str = ""  # why the first of `rest` is not known

    @property
    def random(self) -> bool:
        return any(self.drawn)


@dataclass(frozen=True)
class Known:
    """A transform that the engine supports: the types it accepts, its operation, and the type of its result (None: the
    same type as its input).

    `apply` is called with the chain and the transform, and with one more chain for each list in `members`; that chain
    contains the list's operations. `apply` raises ConfigError, or the error of an invalid attribute, if the engine does
    not support this object.
    """

    takes: tuple[str, ...]
    apply: Callable[..., Augmentations]
    gives: str | None = None
    channels: Callable[[Any], int] | None = None  # channels of the result, if they may differ from the input's
    name: str = ""  # if it differs from the transform's own name
    crops: str = ""  # container of the result, if there are several
    members: Callable[[Any], list[list[Any]]] | None = None  # lists of transforms that it calls


@dataclass(frozen=True)
class Family:
    """The transforms of one package: its modules, and the supported transforms by class name."""

    modules: tuple[str, ...]
    known: Mapping[str, Known]


def keep(chain: Chain, t: Any) -> Any:
    """The operation for transforms that do not change values."""
    return chain.dataset


def fill_of(chain: Chain, fill: Any) -> Any:
    """Returns the fill colour that torchvision passes to Pillow."""
    if isinstance(fill, dict):
        raise ConfigError(f"fill={fill!r} must be one value, or one for each channel")
    if fill is None:
        return 0
    if not isinstance(fill, Sequence):
        return int(fill)
    if len(fill) not in (1, chain.channels):
        raise ConfigError(f"fill={fill!r} must have one value for each of {chain.channels} channels")
    return [int(value) for value in fill] if len(fill) > 1 else int(fill[0])


def v2_fill(chain: Chain, t: Any) -> Any:
    """Like fill_of(), for transforms whose v2 class stores the fill in another form."""
    made = getattr(t, "_fill", None)
    if made is None:
        return fill_of(chain, t.fill)
    if list(made) != ["others"]:
        raise ConfigError(f"fill={t.fill!r} must be one value, or one for each channel")
    return fill_of(chain, made["others"])


def is_altered(transform: Any) -> bool:
    """Returns whether this object behaves differently from its class, because it has its own methods or hooks."""
    if isinstance(transform, types.FunctionType):
        return False
    own = vars(transform)
    if any(hasattr(type(transform), name) for name in own if not name.startswith("__")) or "__call__" in own:
        return True
    return any(own.get(hooks) for hooks in ("_forward_hooks", "_forward_pre_hooks"))
