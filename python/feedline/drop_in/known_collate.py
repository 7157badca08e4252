# SPDX-License-Identifier: Apache-2.0
"""Functions of collate_fn that are known: what they make of a batch of images and labels that the engine collated.

A function of the user's is known by what it does: its instructions are those of one of the functions below, and the
names in it stand for torch's default_collate and for torchvision v2's MixUp, CutMix or RandomChoice of these. Such a
name may be an argument that functools.partial gives, or that has a default.
"""

from __future__ import annotations

import dis
import functools
import inspect
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils.data import default_collate

from .. import _engine
from . import chains

_V2 = "torchvision.transforms.v2"
_SET_UP = ("RESUME", "COPY_FREE_VARS", "PUSH_NULL", "CACHE")  # that a function has or has not, as names are bound
_NOT_PLAIN = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


class Collation(Protocol):
    """What becomes of the images and labels of a batch, which are the engine's and default_collate's."""

    @property
    def name(self) -> str: ...

    @property
    def why(self) -> str: ...

    @property
    def takes(self) -> tuple[str, ...]:
        """What flows out of the transforms, where that matters; empty: anything."""
        ...

    def __call__(self, batch: list[Any]) -> Any: ...


class Stock:
    """torch's default_collate."""

    name, why = "default_collate", "rows are written where they stay; labels by Python"
    takes: tuple[str, ...] = ()

    def __call__(self, batch: list[Any]) -> Any:
        return batch


class Fast:
    """timm's fast_collate, of uint8 tensors."""

    name, why = "fast_collate", "rows are written where they stay; labels by Python"
    takes: tuple[str, ...] = (chains.BYTES,)

    def __call__(self, batch: list[Any]) -> Any:
        images, labels = batch
        return images, labels.long() if labels.ndim == 1 else labels


@dataclass(frozen=True)
class Mixing:
    """torchvision's mixing behind default_collate. What it draws, and the labels, are torchvision's own code.

    Written in place: the batch is one that nobody else has seen.
    """

    name: str
    mixer: Any
    as_list: bool  # it is called with one list, and not with images and labels
    why: str = "rows are mixed in place, in this thread; drawn by torchvision from torch's random numbers"
    takes: tuple[str, ...] = ()

    def __call__(self, batch: list[Any]) -> Any:
        images, labels = batch
        given = (batch,) if self.as_list else (images, labels)
        mixer = self._chosen()
        if not _is_plain(images, labels) or mixer.num_classes is None:
            return mixer(*given)
        params = {"labels": labels, "batch_size": len(labels), **mixer.make_params([images])}
        targets = mixer.transform(labels, params)
        if "box" in params:
            _engine.cut_mix(images.data_ptr(), tuple(images.shape), params["box"])
        else:
            _engine.mix_up(images.data_ptr(), tuple(images.shape), params["lam"])
        return [images, targets] if self.as_list else (images, targets)

    def _chosen(self) -> Any:
        """The one that torchvision's RandomChoice chooses."""
        if type(self.mixer).__name__ != "RandomChoice":
            return self.mixer
        choice = type(self.mixer)([_Itself(mixer) for mixer in self.mixer.transforms])
        choice.p = self.mixer.p
        return choice(None)


@dataclass(frozen=True)
class _Itself:
    mixer: Any

    def __call__(self, _: Any) -> Any:
        return self.mixer


def collation_of(function: Any) -> Collation | str:
    """What `function`, a collate_fn, makes of a batch; or why that is not known."""
    if function is default_collate:
        return Stock()
    if function is _loaded("timm.data.loader", "fast_collate"):
        return Fast()
    unknown = "collate_fn is not torch's default_collate"
    args, keywords = (), {}
    if type(function) is functools.partial:
        function, args, keywords = function.func, function.args, function.keywords
    if type(function) is not types.FunctionType:
        return unknown
    given = _given(function, args, keywords)
    if given is None:
        return unknown
    for template, as_list in _TEMPLATES:
        mixer = _mixer_in(function, given, template)
        if mixer is not None:
            why = _why_not_known(mixer)
            return f"{unknown}, and {why}" if why else Mixing(f"{_shown(function)}: {_words(mixer)}", mixer, as_list)
    return unknown


# -- the functions that are known

_MIXER: Any = object()  # stands for torchvision's


def _starred(batch: Any) -> Any:
    return _MIXER(*default_collate(batch))


def _unpacked(batch: Any) -> Any:
    images, labels = default_collate(batch)
    return _MIXER(images, labels)


def _unpacked_into_two(batch: Any) -> Any:
    images, labels = default_collate(batch)
    images, labels = _MIXER(images, labels)
    return images, labels


def _listed(batch: Any) -> Any:
    return _MIXER(default_collate(batch))


_TEMPLATES: tuple[tuple[Any, bool], ...] = (
    (_starred, False),
    (_unpacked, False),
    (_unpacked_into_two, False),
    (_listed, True),
)


_NAMES = ("LOAD_GLOBAL", "LOAD_DEREF")
_MEMBERS = ("LOAD_ATTR", "LOAD_METHOD")
_LOCALS = ("LOAD_FAST", "STORE_FAST")
_OF_LOCALS = re.compile("(?:(?:^|_)(?:LOAD|STORE)_FAST(?:_BORROW)?)+")


@dataclass(frozen=True)
class _Named:
    """What a name in a function stands for."""

    value: Any


def _given(function: types.FunctionType, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any] | None:
    """Values of all arguments but the batch, which comes behind `args`; None: it takes other arguments."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & _NOT_PLAIN or code.co_posonlyargcount or len(args) >= len(positional):
        return None
    batch = positional[len(args)]
    given = dict(zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False))
    given |= function.__kwdefaults__ or {}
    given |= dict(zip(positional, args, strict=False)) | keywords
    if batch not in keywords:
        given.pop(batch, None)  # a default for it is not used
    return given if given.keys() == set(names) - {batch} else None


def _mixer_in(function: types.FunctionType, given: dict[str, Any], template: types.FunctionType) -> Any:
    """What stands in `function` where a template has _MIXER; None: it is another function."""
    try:
        found, wanted = list(_instructions(function, given)), list(_instructions(template, {}))
    except (NameError, ValueError, AttributeError):  # a name that stands for nothing yet, or for something new
        return None
    if len(found) != len(wanted):
        return None
    mixer = None
    for ours, theirs in zip(found, wanted, strict=True):
        if isinstance(theirs, _Named) and theirs.value is _MIXER and isinstance(ours, _Named):
            mixer = ours.value
        elif isinstance(theirs, _Named) != isinstance(ours, _Named) or not (
            theirs.value is ours.value if isinstance(theirs, _Named) else theirs == ours
        ):
            return None
    return mixer


def _instructions(function: types.FunctionType, given: dict[str, Any]) -> Iterator[Any]:
    """What a function does, with values for names: (operation, argument) or _Named.

    Its own variables are numbered, without those that are `given`: a ValueError where one of these is assigned.
    """
    code = function.__code__
    closed = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    variables = [name for name in code.co_varnames if name not in given]
    named: _Named | None = None
    for operation, name, arg in _singly(function):
        if named is not None:
            if operation in _MEMBERS and isinstance(named.value, types.ModuleType):
                named = _Named(getattr(named.value, name))
                continue
            yield named
            named = None
        if operation in _NAMES:
            named = _Named(closed[name].cell_contents if name in closed else _global(function, name))
        elif operation == "LOAD_FAST" and name in given:
            named = _Named(given[name])
        elif operation in _LOCALS:
            yield operation, variables.index(name)
        elif operation not in _SET_UP:
            yield operation, arg


def _singly(function: types.FunctionType) -> Iterator[tuple[str, Any, int | None]]:
    """Operation, what its argument stands for, argument; Python 3.13's instructions for two variables as two."""
    for instruction in dis.get_instructions(function):
        if _OF_LOCALS.fullmatch(instruction.opname):
            names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            for deed, name in zip(re.findall("LOAD|STORE", instruction.opname), names, strict=True):
                yield f"{deed}_FAST", name, instruction.arg
        else:
            yield instruction.opname, instruction.argval, instruction.arg


def _global(function: types.FunctionType, name: str) -> Any:
    if name not in function.__globals__:
        raise NameError(name)
    return function.__globals__[name]


# -- torchvision's mixers


def _why_not_known(mixer: Any) -> str:
    """Why what a batch is given to is not one of torchvision's; empty where it is."""
    if _is_exactly(mixer, "RandomChoice"):
        whys = (_why_not_known(member) for member in mixer.transforms)
        return next(filter(None, whys), "")
    if not (_is_exactly(mixer, "MixUp") or _is_exactly(mixer, "CutMix")):
        return f"{_shown(mixer)} in it is not torchvision v2's MixUp, CutMix or RandomChoice of them"
    heuristic = _loaded("torchvision.transforms.v2._utils", "_find_labels_default_heuristic")
    if heuristic is None or mixer._labels_getter is not heuristic:
        return f"{_shown(mixer)} finds its labels in a way of its own"
    return ""


def _is_exactly(mixer: Any, name: str) -> bool:
    return type(mixer) is _loaded(_V2, name) and not chains.is_altered(mixer)


def _is_plain(images: Any, labels: Any) -> bool:
    """Whether images are rows that the engine mixes, and labels classes that torchvision makes shares of."""
    return (
        type(images) is torch.Tensor
        and (images.dtype, images.ndim) == (torch.float32, 4)
        and images.is_contiguous()
        and type(labels) is torch.Tensor
        and labels.ndim == 1
        and len(labels) == len(images) > 1
    )


def _words(mixer: Any) -> str:
    if _is_exactly(mixer, "RandomChoice"):
        return " or ".join(_words(member) for member in mixer.transforms)
    return type(mixer).__name__


def _shown(thing: Any) -> str:
    return str(getattr(thing, "__name__", type(thing).__qualname__))


def _loaded(module: str, name: str) -> Any:
    """A name of a module, where that is loaded."""
    return getattr(sys.modules.get(module), name, None)
