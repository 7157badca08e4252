# SPDX-License-Identifier: Apache-2.0
"""DINOv2's and DINOv3's DataAugmentationDINO: several crops of an image, known by what the class does with an image.

Such an object is asked once, with a stand-in for an image and stand-ins for its transforms, which note what is given to
what. So forks are known as well, as long as they only hand the image on; the layout of what they give is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from ..data.chain import chain as operations
from ..data.view_list import Views
from ..data.view_list import of as views_of
from ..errors import ConfigError
from . import fetch, transforms
from .chains import BYTES, FLOATS, Chain, is_altered

_CLASS = "DataAugmentationDINO"
_MOST_VIEWS = 254
# What a class has in any case, and a constructor.
_OF_ANY_CLASS = {"__init__", "__module__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__"}


@dataclass(eq=False)
class _Image:
    """An image behind `steps`."""

    steps: tuple[Any, ...] = ()
    is_used: bool = False  # something was made of it


@dataclass(frozen=True)
class _Noting:
    """Stands for a transform."""

    transform: Any

    def __call__(self, image: Any) -> _Image:
        if type(image) is not _Image:
            raise ConfigError(f"{transforms.name_of(self.transform)} gets something else than an image")
        if image.is_used and image.steps:  # of the file itself any number of crops may be made
            raise ConfigError(f"{_CLASS} makes several crops of one changed image")
        image.is_used = True
        return _Image((*image.steps, self.transform))


@dataclass(frozen=True)
class View:
    """A place in what the class gives."""

    number: int


@dataclass(frozen=True)
class Crops:
    """What an object makes of an image.

    Attributes:
        layout: dicts, lists and tuples of views and constants.
        chains: of each view, known whole.
    """

    layout: Any
    chains: tuple[Chain, ...] = field(repr=False)

    @property
    def views(self) -> Views:
        return views_of("views", (), {f"view_{i}": chain.dataset for i, chain in enumerate(self.chains)})

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(f"view {i}: {', '.join(chain.known)}" for i, chain in enumerate(self.chains))

    def filled(self, values: list[Any]) -> Any:
        """The layout with values for its views."""
        return _mapped(self.layout, lambda leaf: values[leaf.number] if type(leaf) is View else leaf)


def crops_of(augmentation: Any) -> Crops | str | None:
    """What such an object makes of an image, or why that is not known; None: it is none."""
    if type(augmentation).__name__ != _CLASS:
        return None
    if not hasattr(augmentation, "__dict__") or is_altered(augmentation):
        return f"{_CLASS} has a method of its own"
    try:
        made = _asked(augmentation)
        images = list({id(leaf): leaf for leaf in _leaves(made) if type(leaf) is _Image}.values())
        if not 0 < len(images) <= _MOST_VIEWS:
            raise ConfigError(f"{_CLASS} gives {len(images)} crops")
        if any(image.is_used for image in images):
            raise ConfigError(f"{_CLASS} makes several crops of one changed image")
        chains = tuple(_chain(image) for image in images)
    except ConfigError as error:
        return str(error)
    number = {id(image): i for i, image in enumerate(images)}
    return Crops(_mapped(made, lambda leaf: View(number[id(leaf)]) if type(leaf) is _Image else leaf), chains)


def _asked(augmentation: Any) -> Any:
    """What it gives for a stand-in, changing nothing."""
    probe = object.__new__(type(augmentation))
    given = {name: _Noting(value) if callable(value) else value for name, value in vars(augmentation).items()}
    vars(probe).update(given)
    before = _generators()
    try:
        with fetch.untouched_generators():
            made = probe(_Image())
            drawn = _generators() != before
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{_CLASS} does more with an image than to hand it on: {error}") from None
    if drawn or vars(probe) != given:
        raise ConfigError(f"{_CLASS} draws or keeps something itself")
    return made


def _generators() -> tuple[Any, ...]:
    python, arrays, tensors = fetch.generator_states()
    return python, arrays[1].tobytes(), arrays[2:], tensors.numpy().tobytes()


def _chain(image: _Image) -> Chain:
    members = list(_plain_members(image.steps))
    chain = transforms.chain_of_members(members, Chain(operations()))
    if chain.rest:
        raise ConfigError(f"{_CLASS}: {chain.why}")
    if chain.flows not in (BYTES, FLOATS):
        raise ConfigError(f"{_CLASS} gives {chain.flows}")
    return chain


def _plain_members(steps: Iterable[Any]) -> Iterator[Any]:
    """The transforms in lists; of both repositories' GaussianBlur, what it is made of; without what does nothing."""
    for step in steps:
        for member in transforms.members_of(step):
            base = type(member).__mro__[1]
            if type(member) is nn.Identity:
                continue
            yield _as_base(member, base) if _is_named_apply(member, base) else member


def _is_named_apply(member: Any, base: type) -> bool:
    """A GaussianBlur that is torchvision's RandomApply with arguments of its own, and no other method."""
    is_apply = base.__name__ == "RandomApply" and base.__module__.startswith("torchvision.transforms.")
    return is_apply and type(member).__name__ == "GaussianBlur" and not set(vars(type(member))) - _OF_ANY_CLASS


def _as_base(member: Any, base: type) -> Any:
    made: Any = object.__new__(base)
    vars(made).update(vars(member))
    return made


def _leaves(made: Any) -> Iterator[Any]:
    if type(made) is dict:
        made = list(made.values())
    if type(made) in (list, tuple):
        for part in made:
            yield from _leaves(part)
    else:
        yield made


def _mapped(made: Any, change: Callable[[Any], Any]) -> Any:
    if type(made) is dict:
        return {name: _mapped(part, change) for name, part in made.items()}
    if type(made) in (list, tuple):
        return type(made)(_mapped(part, change) for part in made)
    return change(made)
