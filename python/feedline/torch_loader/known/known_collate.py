# SPDX-License-Identifier: Apache-2.0
"""Functions of collate_fn that are known: what they make of a batch of images and labels that the engine collated.

A function of the user's is known by what it does: its instructions are those of one of the functions below, and the
names in it stand for torch's default_collate and for torchvision v2's MixUp, CutMix or RandomChoice of these. Such a
name may be an argument that functools.partial gives, or that has a default. It may be a method, or an object that is
called, which has the mixer in an attribute.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils.data import default_collate

from ... import _engine
from . import chains, known_functions

_V2 = "torchvision.transforms.v2"


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
    read = known_functions.read(function)
    if read is None:
        return unknown
    for template, as_list in _TEMPLATES:
        mixer = read.value(template, _MIXER)
        if mixer is not None:
            why = _why_not_known(mixer)
            return f"{unknown}, and {why}" if why else Mixing(f"{read.name}: {_words(mixer)}", mixer, as_list)
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
