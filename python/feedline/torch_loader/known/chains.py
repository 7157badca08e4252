# SPDX-License-Identifier: Apache-2.0
"""What is known of a list of transforms: operations on a dataset, and what flows out of them."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...data.augmentations import Augmentations
from ...errors import ConfigError

# What flows between two transforms.
PIL, BYTES, FLOATS, ARRAY = "a PIL image", "a uint8 tensor", "a float32 tensor", "a uint8 array"
# What several of these come as.
TUPLE, STACKED = "a tuple", "one tensor"


@dataclass(frozen=True)
class Chain:
    """The known transforms at the front of a list, as operations on a dataset; `rest` are the others."""

    dataset: Any  # Dataset, or a chain() without one
    known: tuple[str, ...] = ()
    drawn: tuple[bool, ...] = ()  # whether each of the known ones draws random numbers
    flows: str = PIL  # what comes out of the known ones
    channels: int = 3
    tv_image: bool = False  # and it is a torchvision.tv_tensors.Image
    crops: str = ""  # it is several of them, as TUPLE or STACKED
    rest: tuple[Any, ...] = ()
    why: str = ""  # the first of `rest` is not known

    @property
    def random(self) -> bool:
        return any(self.drawn)


@dataclass(frozen=True)
class Known:
    """A transform that the engine has: what it takes, as an operation, what it gives (None: what it takes).

    `apply` gets the chain, the transform, and for each list of `members` the operations on that list as a chain. It
    raises ConfigError, or the error of a wrong attribute, if the engine does not do what this object does.
    """

    takes: tuple[str, ...]
    apply: Callable[..., Augmentations]
    gives: str | None = None
    channels: Callable[[Any], int] | None = None  # of what it gives, where those may be others than it takes
    name: str = ""  # where it is not the transform's own
    crops: str = ""  # as what it gives several
    members: Callable[[Any], list[list[Any]]] | None = None  # lists of the transforms that it calls


@dataclass(frozen=True)
class Family:
    """Transforms of one package: the modules that have them, and those that are known by the names of their classes."""

    modules: tuple[str, ...]
    known: Mapping[str, Known]


def keep(chain: Chain, t: Any) -> Any:
    """For what changes no value."""
    return chain.dataset


def fill_of(chain: Chain, fill: Any) -> Any:
    """What torchvision hands on to Pillow as the colour from outside of the image."""
    if isinstance(fill, dict):
        raise ConfigError(f"fill={fill!r} is not one value, or one for each channel")
    if fill is None:
        return 0
    if not isinstance(fill, Sequence):
        return int(fill)
    if len(fill) not in (1, chain.channels):
        raise ConfigError(f"fill={fill!r} has not one value for each of {chain.channels} channels")
    return [int(value) for value in fill] if len(fill) > 1 else int(fill[0])


def v2_fill(chain: Chain, t: Any) -> Any:
    """fill_of() of a transform whose v2 class keeps the fill in another form, which it goes by."""
    made = getattr(t, "_fill", None)
    if made is None:
        return fill_of(chain, t.fill)
    if list(made) != ["others"]:
        raise ConfigError(f"fill={t.fill!r} is not one value, or one for each channel")
    return fill_of(chain, made["others"])


def is_altered(transform: Any) -> bool:
    """Whether this one object does not do what its class does: a method of its own, or hooks."""
    if isinstance(transform, types.FunctionType):
        return False
    own = vars(transform)
    if any(hasattr(type(transform), name) for name in own if not name.startswith("__")) or "__call__" in own:
        return True
    return any(own.get(hooks) for hooks in ("_forward_hooks", "_forward_pre_hooks"))
