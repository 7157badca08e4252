# SPDX-License-Identifier: Apache-2.0
"""Recognises collate functions, and determines how they change a batch of images and labels that the engine
collated.

A user's function is recognised by its bytecode: its instructions must be those of one of the templates below, and its
names must refer to torch's default_collate and to torchvision v2's MixUp, CutMix or a RandomChoice of these. A name may
also be an argument with a default, or an argument bound by functools.partial. The function may also be a method, or a
callable object that has the mixer in an attribute.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils.data import default_collate

from .... import _engine
from ..transforms import chains, function_templates

_V2 = "torchvision.transforms.v2"


class Collation(Protocol):
    """Changes the images and labels of a batch after the engine and default_collate have collated them."""

    @property
    def name(self) -> str: ...

    @property
    def why(self) -> str: ...

    @property
    def takes(self) -> tuple[str, ...]:
        """The types of images that the collate function accepts; empty if it accepts any type."""
        ...

    def __call__(self, batch: list[Any]) -> Any: ...


class Stock:
    """torch's default_collate."""

    name, why = "default_collate", "images are written directly into the batch; Python collates the labels"
    takes: tuple[str, ...] = ()

    def __call__(self, batch: list[Any]) -> Any:
        return batch


class Fast:
    """timm's fast_collate, for uint8 tensors."""

    name, why = "fast_collate", "images are written directly into the batch; Python collates the labels"
    takes: tuple[str, ...] = (chains.BYTES,)

    def __call__(self, batch: list[Any]) -> Any:
        images, labels = batch
        return images, labels.long() if labels.ndim == 1 else labels


@dataclass(frozen=True)
class Mixing:
    """Applies torchvision's mixing after default_collate. torchvision's own code draws random numbers and mixes the
    labels.

    Images are mixed in place, because no other code has a reference to the batch.
    """

    name: str
    mixer: Any
    as_list: bool  # it is called with one list, not with images and labels
    why: str = "images are mixed in place, in this thread; torchvision draws from torch's generator"
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
        """Returns the transform that torchvision's RandomChoice chooses for a batch."""
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
    """Returns how `function`, a collate_fn, changes a batch, or the reason why it is not recognised."""
    if function is default_collate:
        return Stock()
    if function is _loaded("timm.data.loader", "fast_collate"):
        return Fast()
    unknown = "collate_fn is not torch's default_collate"
    read = function_templates.read(function)
    if read is None:
        return unknown
    for template, as_list in _TEMPLATES:
        mixer = read.value(template, _MIXER)
        if mixer is not None:
            why = _why_not_known(mixer)
            return f"{unknown}, and {why}" if why else Mixing(f"{read.name}: {_words(mixer)}", mixer, as_list)
    return unknown


# -- the functions that are known

_MIXER: Any = object()  # placeholder for torchvision's mixer


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
    """Returns the reason why the object that the function calls with a batch is not one of torchvision's mixers; an
    empty string if it is one.
    """
    if _is_exactly(mixer, "RandomChoice"):
        whys = (_why_not_known(member) for member in mixer.transforms)
        return next(filter(None, whys), "")
    if not (_is_exactly(mixer, "MixUp") or _is_exactly(mixer, "CutMix")):
        return f"it calls {_shown(mixer)}, which is not torchvision v2's MixUp, CutMix or RandomChoice of them"
    heuristic = _loaded("torchvision.transforms.v2._utils", "_find_labels_default_heuristic")
    if heuristic is None or mixer._labels_getter is not heuristic:
        return f"{_shown(mixer)} has its own labels_getter"
    return ""


def _is_exactly(mixer: Any, name: str) -> bool:
    return type(mixer) is _loaded(_V2, name) and not chains.is_altered(mixer)


def _is_plain(images: Any, labels: Any) -> bool:
    """Returns whether the engine can mix the images while torchvision mixes the labels."""
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
    """Returns an attribute of a module, or None if the module is not imported."""
    return getattr(sys.modules.get(module), name, None)
