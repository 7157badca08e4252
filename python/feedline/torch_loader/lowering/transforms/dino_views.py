# SPDX-License-Identifier: Apache-2.0
"""Recognises, by tracing, DataAugmentationDINO in DINOv2 and DINOv3, which creates several crops of an image.

The augmentation object is called once, with placeholders for an image and its transforms that record the data flow.
Therefore, modified copies of the class are also recognised if their code only passes the image to transforms. The
layout of the result is determined by the class.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn
from torch.utils import _pytree

from ....data.ops.chain import chain as operations
from ....data.view_list import Views, drawn_alike
from ....errors import ConfigError
from ...fetching import fetch
from . import transformers_processors, transforms
from .chains import BYTES, FLOATS, PIL, Chain, is_altered

_CLASS = "DataAugmentationDINO"
_MOST_VIEWS = 254
_MOST_LISTED = 64  # a longer list in a class or module is data, not transforms
# Attributes that every class has, and a constructor.
_OF_ANY_CLASS = {"__init__", "__module__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__"}


@dataclass(eq=False)
class _Image:
    """A placeholder for an image or for the result of a transform.

    Attributes:
        before: the placeholder from which this result was computed; None for the image from the file.
        step: the transform that computed this result.
    """

    before: _Image | None = None
    step: Any = None

    @property
    def path(self) -> tuple[_Image, ...]:
        """The results of all transforms so far, in order, ending with this one."""
        return () if self.before is None else (*self.before.path, self)


def _untouchable(image: _Image) -> Any:
    raise ConfigError(f"{_CLASS} creates a transform for each image")


# v2's transforms return unknown objects unchanged, so a transform that is not in an attribute would remain unnoticed.
_pytree.register_pytree_node(_Image, _untouchable, lambda leaves, context: _Image())


@dataclass(frozen=True)
class _Noting:
    """A placeholder for a transform, which records its calls."""

    transform: Any

    def __call__(self, image: Any) -> _Image:
        if type(image) is not _Image:
            raise ConfigError(f"{transforms.name_of(self.transform)} is called with something other than an image")
        return _Image(image, self.transform)


@dataclass(frozen=True)
class View:
    """The position of a crop in the result."""

    number: int


@dataclass(frozen=True)
class Crops:
    """The crops that an object creates from an image.

    Attributes:
        layout: dicts, lists and tuples of views and constants.
        chains: the transforms of each view, all of which are supported.
        shared: transforms that are applied first, once for all views.
        drawn_as: for each view, the earlier views whose random numbers its first operations share.
        made_as: a function that is called with the layout to create the result; None if the layout is the result.
    """

    layout: Any
    chains: tuple[Chain, ...] = field(repr=False)
    shared: tuple[Any, ...] = field(default=(), repr=False)
    made_as: Callable[[Any], Any] | None = None
    drawn_as: tuple[tuple[int, ...], ...] = ()

    @property
    def views(self) -> Views:
        drawn_as = self.drawn_as or ((),) * len(self.chains)
        return drawn_alike({f"view_{i}": chain.dataset for i, chain in enumerate(self.chains)}, drawn_as)

    @property
    def known(self) -> tuple[str, ...]:
        """For each view."""
        return tuple(f"view {i}{self._start(i)}: {', '.join(chain.known)}" for i, chain in enumerate(self.chains))

    def _start(self, view: int) -> str:
        others = list(dict.fromkeys(self.drawn_as[view])) if self.drawn_as else []
        return f" (begins as view {' and '.join(map(str, others))})" if others else ""

    def before(self, dataset: Any) -> Chain:
        """Returns the shared transforms as operations on `dataset`."""
        return transforms.chain_of_members(list(_plain_members(self.shared)), Chain(dataset))

    def filled(self, values: list[Any]) -> Any:
        """Returns the layout with values in place of its views."""
        layout = _mapped(self.layout, lambda leaf: values[leaf.number] if type(leaf) is View else leaf)
        return layout if self.made_as is None else self.made_as(layout)


def crops_of(augmentation: Any) -> Crops | str | None:
    """Returns the crops that `augmentation` creates, or the reason why they are not supported; None if `augmentation`
    creates no crops.
    """
    if transformers_processors.is_processor(augmentation):
        return _processed(augmentation)
    if type(augmentation).__name__ != _CLASS:
        return None
    if not hasattr(augmentation, "__dict__") or is_altered(augmentation):
        return f"{_CLASS} overrides a method"
    try:
        made = _asked(augmentation)
        images = list({id(leaf): leaf for leaf in _leaves(made) if type(leaf) is _Image}.values())
        if not 0 < len(images) <= _MOST_VIEWS:
            raise ConfigError(f"{_CLASS} returns {len(images)} crops")
        shared = _shared(images)
        start = _start(shared)
        paths = [image.path[len(shared) :] for image in images]
        chains = tuple(_chain(path, start) for path in paths)
        drawn_as = tuple(_drawn_as(paths, i, start) for i in range(len(paths)))
    except ConfigError as error:
        return f"{error}{_options(augmentation)}"
    number = {id(image): i for i, image in enumerate(images)}
    layout = _mapped(made, lambda leaf: View(number[id(leaf)]) if type(leaf) is _Image else leaf)
    return Crops(layout, chains, tuple(image.step for image in shared), drawn_as=drawn_as)


def _shared(images: list[_Image]) -> tuple[_Image, ...]:
    """Returns the results from which all `images` were computed, in order."""
    paths = [image.path for image in images]
    same = itertools.takewhile(lambda level: len({id(one) for one in level}) == 1, zip(*paths, strict=False))
    return tuple(level[0] for level in same) if len(images) > 1 else ()


def _start(shared: tuple[_Image, ...]) -> Chain:
    """Returns the transforms with which every view begins."""
    front = transforms.chain_of_members(list(_plain_members(one.step for one in shared)), Chain(operations()))
    if front.rest:
        raise ConfigError(f"{_CLASS}: {front.why}")
    if front.flows != PIL:
        raise ConfigError(f"{_CLASS} makes several crops of {front.flows}")
    return replace(front, dataset=operations(), known=(), drawn=())


def _drawn_as(paths: list[tuple[_Image, ...]], view: int, start: Chain) -> tuple[int, ...]:
    """Returns, for each of a view's first operations, the earlier view that shares the operation.

    For an operation that several but not all views share, random numbers are drawn once, for the first of these views.
    """
    places: list[int] = []
    for length, image in enumerate(paths[view], 1):
        others = (i for i, path in enumerate(paths[:view]) if any(one is image for one in path))
        other = next(others, None)
        if other is None:
            break
        steps = (one.step for one in paths[view][:length])
        chain = transforms.chain_of_members(list(_plain_members(steps)), start)
        places += [other] * (len(chain.dataset._engine.operations()) - len(places))
    return tuple(places)


def _options(augmentation: Any) -> str:
    """Returns the enabled DINOv3 options that are not supported: those that crop crops or resize normalized tensors."""
    own = vars(augmentation)
    if own.get("local_crops_subset_of_global_crops"):
        return " (local_crops_subset_of_global_crops crops tensors at positions from NumPy's generator)"
    if own.get("gram_teacher_crops_size") is not None and not own.get("gram_teacher_no_distortions"):
        return " (gram_teacher_crops_size without gram_teacher_no_distortions resizes normalized tensors)"
    return ""


def _processed(processor: Any) -> Crops | str:
    """Returns the crops for one of Hugging Face's processors, whose result is a batch of one image, as a list."""
    try:
        dataset = transformers_processors.applied(Chain(operations()), processor)
    except ConfigError as error:
        return str(error)
    if not (processor.do_center_crop or (processor.do_resize and processor.size.height)):
        return f"{type(processor).__name__} returns images of different sizes"
    chain = Chain(dataset, (type(processor).__name__,), (False,), FLOATS)
    return Crops({"pixel_values": [View(0)]}, (chain,), made_as=transformers_processors.batch_feature())


def _asked(augmentation: Any) -> Any:
    """Returns the result of `augmentation` for a placeholder, without side effects."""
    names = _Names()
    before = _generators()
    try:
        probe: Any = object.__new__(names.class_of(type(augmentation)))
        given = {name: _mapped(value, _noted) for name, value in vars(augmentation).items()}
        vars(probe).update(given)
        with fetch.untouched_generators():
            made = probe(_Image())
            drawn = _generators() != before
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{_CLASS} uses an image in other ways than passing it to a transform: {error}") from None
    if drawn or vars(probe) != given or names.are_changed():
        raise ConfigError(f"{_CLASS} draws random numbers or stores data itself")
    return made


def _noted(value: Any) -> Any:
    """Returns a placeholder if `value` is a transform; returns other values unchanged."""
    if type(value) is nn.ModuleList:
        return [_noted(member) for member in value]
    return _Noting(value) if callable(value) and not isinstance(value, type) else value


class _Names:
    """Copies classes such that their functions see placeholders in place of the transforms in modules and classes.

    Only functions from modules that define the class or one of its bases are copied. Other functions are called with
    the placeholder image.
    """

    def __init__(self) -> None:
        self._of_modules: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  # replaced globals, and the originals

    def class_of(self, kind: type) -> type:
        bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] not in ("builtins", "torch")]
        members = {name: value for base in reversed(bases) for name, value in vars(base).items()}
        own = {name: self._seen(value) for name, value in members.items() if name not in _OF_ANY_CLASS}
        return type(kind.__name__, (kind,), {name: value for name, value in own.items() if value is not members[name]})

    def are_changed(self) -> bool:
        return any(
            names.keys() != first.keys() or any(names[name] is not value for name, value in first.items())
            for names, first in self._of_modules.values()
        )

    def _seen(self, value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if type(value) in (list, tuple, dict) and len(value) <= _MOST_LISTED:
            parts = list(value.values()) if type(value) is dict else list(value)
            seen = [self._one(part) for part in parts]
            if all(one is part for one, part in zip(seen, parts, strict=True)):
                return value
            return dict(zip(value, seen, strict=True)) if type(value) is dict else type(value)(seen)
        return self._one(value)

    def _one(self, value: Any) -> Any:
        is_transform = isinstance(value, nn.Module) or type(value).__module__.startswith("torchvision.")
        return _noted(value) if is_transform and callable(value) else value

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        cells = tuple(self._cell(cell) for cell in function.__closure__ or ()) or None
        names = self._module(function.__globals__)
        made = types.FunctionType(function.__code__, names, function.__name__, None, cells)
        made.__defaults__ = tuple(map(self._seen, function.__defaults__ or ())) or None
        made.__kwdefaults__ = {name: self._seen(value) for name, value in (function.__kwdefaults__ or {}).items()}
        return made

    def _cell(self, cell: types.CellType) -> types.CellType:
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            return cell
        is_plain = isinstance(value, (type, types.FunctionType))  # the class for super(), or an enclosing function
        return cell if is_plain else types.CellType(self._seen(value))

    def _module(self, names: dict[str, Any]) -> dict[str, Any]:
        if id(names) not in self._of_modules:
            seen: dict[str, Any] = {}
            self._of_modules[id(names)] = seen, {}
            for name, value in names.items():
                of_module = isinstance(value, types.FunctionType) and value.__globals__ is names
                is_other = isinstance(value, types.FunctionType) and not of_module
                seen[name] = value if is_other else self._seen(value)
            self._of_modules[id(names)] = seen, dict(seen)
        return self._of_modules[id(names)][0]


def _generators() -> tuple[Any, ...]:
    python, arrays, tensors = fetch.generator_states()
    return python, arrays[1].tobytes(), arrays[2:], tensors.numpy().tobytes()


def _chain(path: tuple[_Image, ...], start: Chain) -> Chain:
    chain = transforms.chain_of_members(list(_plain_members(one.step for one in path)), start)
    if chain.rest:
        raise ConfigError(f"{_CLASS}: {chain.why}")
    if chain.flows not in (BYTES, FLOATS):
        raise ConfigError(f"{_CLASS} returns {chain.flows}")
    return chain


def _plain_members(steps: Iterable[Any]) -> Iterator[Any]:
    """Yields the transforms in lists, without nn.Identity. Replaces the GaussianBlur of DINOv2 and DINOv3 with its base
    class.
    """
    for step in steps:
        for member in transforms.members_of(step):
            base = type(member).__mro__[1]
            if type(member) is nn.Identity:
                continue
            yield _as_base(member, base) if _is_named_apply(member, base) else member


def _is_named_apply(member: Any, base: type) -> bool:
    """Returns whether `member` is a GaussianBlur that only adds a constructor to torchvision's RandomApply."""
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
