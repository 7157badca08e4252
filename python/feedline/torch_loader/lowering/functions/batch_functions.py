# SPDX-License-Identifier: Apache-2.0
"""Recognises functions for `with_transform()` of Hugging Face's datasets, and collate functions for their samples.

Functions are recognised by their bytecode.

The usual function replaces a column with transformed images::

    def transform(batch):
        batch["pixel_values"] = [augment(image.convert("RGB")) for image in batch["image"]]
        return batch
"""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import default_collate

from ..transforms import function_templates


@dataclass(frozen=True)
class OfImages:
    """How a recognised function changes a batch of columns.

    Attributes:
        transform: the function that is called with each image.
        image: name of the column with the images.
        converts: whether images are converted to RGB before `transform` is called.
        made: name of the transform's result.
        others: (name in a sample, column) for each other column; None: all columns of the batch, with unchanged names.
        keeps_images: whether a sample also contains the original image.
        stacks: whether the results of a batch are stacked into one tensor.
    """

    transform: Any
    image: str
    converts: bool
    made: str
    others: tuple[tuple[str, str], ...] | None
    keeps_images: bool
    stacks: bool = False

    def names(self, columns: Sequence[str]) -> list[tuple[str, str | None]]:
        """Returns (name, column) for each value of a sample, in order; the column is None for the transform's
        result.
        """
        if self.others is None:
            names: list[tuple[str, str | None]] = [(name, name) for name in columns]
            if self.made not in columns:
                names.append((self.made, None))
            names = [(name, None if name == self.made else column) for name, column in names]
            return [pair for pair in names if self.keeps_images or pair[1] != self.image]
        return [(name, None if name == self.made else column) for name, column in self.others]


def of_images(function: Any, batched: bool = True) -> OfImages | None:
    """Returns None for functions that are not recognised. `batched`: whether the function is called with columns of
    many images rather than with one sample.
    """
    read = function_templates.read(function)
    if read is None:
        return None
    for template in _templates(batched):
        found = read.values_and_words(template.function, (_TRANSFORM,), _WORDS)
        if found is None:
            continue
        (transform,), words = found
        others = None
        if template.names is not None:
            others = tuple((words[name], words[column]) for name, column in template.names)
            if len(dict(others)) < len(others):
                return None
        elif not template.keeps_images and words[_MADE] == words[_IMAGE]:
            return None  # it would remove its own result
        return OfImages(
            transform, words[_IMAGE], template.converts, words[_MADE], others, template.keeps_images, template.stacks
        )
    return None


_TRANSFORM: Any = object()  # placeholder for the transform called with each image
_IMAGE, _MADE, _NAME, _COLUMN, _SECOND = _WORDS = ("<image>", "<made>", "<name>", "<column>", "<second>")


@dataclass(frozen=True)
class _Template:
    function: types.FunctionType
    converts: bool
    names: tuple[tuple[str, str], ...] | None
    keeps_images: bool
    stacks: bool


@functools.cache
def _templates(batched: bool) -> tuple[_Template, ...]:
    made = []
    for before, given, converts in _LISTS if batched else _SINGLES:
        for stacks in (False, True) if batched else (False,):
            for body, names, keeps in _BODIES:
                text = "def function(batch):\n" + before + body.format(f"torch.stack({given})" if stacks else given)
                within: dict[str, Any] = {"T": _TRANSFORM, "torch": torch}
                exec(text, within)
                made.append(_Template(within["function"], converts, names, keeps, stacks))
    return tuple(made)


_LISTS = (
    ("", f'[T(image.convert("RGB")) for image in batch["{_IMAGE}"]]', True),
    ("", f'[T(image) for image in batch["{_IMAGE}"]]', False),
    (f'    images = [image.convert("RGB") for image in batch["{_IMAGE}"]]\n', "[T(image) for image in images]", True),
    (
        f'    images = [image.convert("RGB") for image in batch["{_IMAGE}"]]\n'
        "    images = [T(image) for image in images]\n",
        "images",
        True,
    ),
)
_SINGLES = (
    ("", f'T(batch["{_IMAGE}"].convert("RGB"))', True),
    ("", f'T(batch["{_IMAGE}"])', False),
    (f'    image = batch["{_IMAGE}"].convert("RGB")\n    image = T(image)\n', "image", True),
)
_BODIES = (
    (f'    batch["{_MADE}"] = {{}}\n    return batch\n', None, True),
    (f'    batch["{_MADE}"] = {{}}\n    del batch["{_IMAGE}"]\n    return batch\n', None, False),
    (f'    batch["{_MADE}"] = {{}}\n    batch.pop("{_IMAGE}")\n    return batch\n', None, False),
    (f'    return {{{{"{_MADE}": {{}}}}}}\n', ((_MADE, _IMAGE),), False),
    (
        f'    return {{{{"{_MADE}": {{}}, "{_NAME}": batch["{_COLUMN}"]}}}}\n',
        ((_MADE, _IMAGE), (_NAME, _COLUMN)),
        False,
    ),
    (
        f'    return {{{{"{_NAME}": batch["{_COLUMN}"], "{_MADE}": {{}}}}}}\n',
        ((_NAME, _COLUMN), (_MADE, _IMAGE)),
        False,
    ),
)


# -- collate functions


@dataclass(frozen=True)
class Columns:
    """A collate function that creates tensors from some of the values of samples that are dicts.

    Attributes:
        parts: (name in the batch, name in a sample, whether the values are tensors to be stacked) for each value; other
            values are numbers.
        as_tuple: whether the batch is a tuple without names.
    """

    name: str
    parts: tuple[tuple[str, str, bool], ...]
    as_tuple: bool

    def __call__(self, columns: dict[str, Any]) -> Any:
        """`columns`: the values of all samples by name, as lists, or as tensors if they are already stacked."""
        made = {
            name: _stacked(columns[source]) if stacks else torch.tensor(columns[source])
            for name, source, stacks in self.parts
        }
        return tuple(made.values()) if self.as_tuple else made


def _stacked(values: Any) -> Any:
    return values if isinstance(values, torch.Tensor) else torch.stack(values)


@dataclass(frozen=True)
class All:
    """torch's default_collate for samples that are dicts."""

    name: str = "default_collate"

    def __call__(self, columns: dict[str, Any]) -> Any:
        return {
            name: values if isinstance(values, torch.Tensor) else default_collate(values)
            for name, values in columns.items()
        }


def collation_of(function: Any) -> Columns | All | None:
    """Returns None for other functions."""
    if function is default_collate:
        return All()
    read = function_templates.read(function)
    for template, as_tuple in () if read is None else _collate_templates():
        assert read is not None
        found = read.values_and_words(template, (), _WORDS)
        if found is not None:
            words = {_MADE: "", _NAME: "", **found[1]}
            parts = [(words[_MADE], words[_IMAGE], True), (words[_NAME], words[_COLUMN], False)]
            if as_tuple:
                parts = [(str(i), source, stacks) for i, (_, source, stacks) in enumerate(parts)]
            if parts[0][0] == parts[1][0]:
                return None
            return Columns(read.name, tuple(parts), as_tuple)
    return None


@functools.cache
def _collate_templates() -> tuple[tuple[types.FunctionType, bool], ...]:
    stacked = f'torch.stack([sample["{_IMAGE}"] for sample in batch])'
    numbers = f'torch.tensor([sample["{_COLUMN}"] for sample in batch])'
    apart = f"    images = {stacked}\n    numbers = {numbers}\n"
    texts = (
        (f'    return {{"{_MADE}": {stacked}, "{_NAME}": {numbers}}}\n', False),
        (f'{apart}    return {{"{_MADE}": images, "{_NAME}": numbers}}\n', False),
        (f"    return {stacked}, {numbers}\n", True),
        (f"{apart}    return images, numbers\n", True),
    )
    made = []
    for text, as_tuple in texts:
        within: dict[str, Any] = {"torch": torch}
        exec("def collate(batch):\n" + text, within)
        made.append((within["collate"], as_tuple))
    return tuple(made)
