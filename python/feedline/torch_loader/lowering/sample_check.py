# SPDX-License-Identifier: Apache-2.0
"""Compares a few samples from users' dataset classes with the engine's samples, bit for bit, before the first batch.

A class's own `__getitem__` runs on a copy of the dataset object. In the copy, the transforms stop before the first
transform that is random, is unsupported or creates floats, so that the images are compared as pixels. User functions
that receive other values, such as a target transform, are replaced by a function that returns its arguments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
import torch
from torch.utils.data import ConcatDataset

from ..fetching import fetch
from ..native.prefix import Reader
from .dataset_copy import DatasetCopy, key_of
from .datasets import sources
from .datasets.stored_mode import is_stored_as_rgb
from .own_code import own_classes
from .own_code.sample_code import ImageCode, SampleCode, sample_code
from .own_code.sample_values import Refused
from .transforms import transforms

_DRAWN = 3  # samples that are compared in addition to the first and the last
_DRAWN_OF_PARTS = 64  # samples of a Subset of several datasets that are searched for samples of each dataset
_LAST_BITS = 1e-5  # images of floats may differ by the last bit before they are normalized
_NOT_READ = "the engine cannot read the first, the last and some other samples"
_CONVERT = '; images that are not stored in RGB need .convert("RGB") or .convert("L") after Image.open'
_SEED = 1  # any number: the same samples are compared in every run


def why_unequal(dataset: Any, parts: Sequence[tuple[Any, SampleCode]]) -> str:
    """Returns why the samples of the classes in `dataset` differ from the engine's, or an empty string if the compared
    samples are equal.

    Args:
        parts: the datasets of users' classes that `dataset` consists of, with their code.
    """
    try:
        count = len(dataset)
    except TypeError:
        return "the dataset's length is unknown, so samples cannot be compared"
    if not count or not parts:
        return ""
    chosen = _chosen(dataset, count, [leaf for leaf, _ in parts])
    for leaf, code in parts:
        why = _why_part_unequal(leaf, code, chosen[id(leaf)]) if chosen[id(leaf)] else ""
        if why:
            return why if len(parts) == 1 else f"{type(leaf).__qualname__}: {why}"
    return ""


def _chosen(dataset: Any, count: int, leaves: list[Any]) -> dict[int, dict[int, Any]]:
    """Returns the samples to compare for each of `leaves`: the index in `dataset` and the index in the leaf. No samples
    are returned for a leaf that `dataset` does not use.
    """
    found: dict[int, dict[int, Any]] = {id(leaf): {} for leaf in leaves}

    def note(index: int) -> None:
        leaf, inner = sources.locate(dataset, index)
        samples = found.get(id(leaf))
        if samples is not None and len(samples) < _DRAWN + 2:
            samples[index] = inner

    for index in _indices(dataset, random.Random(_SEED)):
        note(index)
    for index in range(count):
        if all(found.values()):
            break
        note(index)
    return found


def _indices(dataset: Any, drawn: random.Random) -> Iterator[int]:
    """Yields the indices of some samples, in most datasets of each leaf."""
    count = len(dataset)
    if type(dataset) is ConcatDataset:
        before = 0
        for part, end in zip(dataset.datasets, dataset.cumulative_sizes, strict=True):
            yield from (before + index for index in _indices(part, drawn) if before + index < count)
            before = end
    elif count:
        most = _DRAWN if len(sources.leaves(dataset)) == 1 else _DRAWN_OF_PARTS
        yield from sorted({0, count - 1, *drawn.sample(range(count), min(count, most))})


def _why_part_unequal(leaf: Any, code: SampleCode, chosen: dict[int, Any]) -> str:
    copied = DatasetCopy(leaf)
    members, counts = _pixel_members(code)
    missing = copied.cut(code, counts)
    if missing:
        members = [
            [member for step in image.steps for member in transforms.members_of(step.transform)]
            for image in code.images
        ]
        copied = DatasetCopy(leaf)
    if not copied.replace_functions(code):
        return "a function of the class is not an attribute of the object, so samples cannot be compared"
    try:
        code = sample_code(copied.dataset)  # with the replaced functions
    except Refused as refused:
        return refused.why
    readers = []
    for image, listed in zip(code.images, members, strict=True):
        files = sources.GivenFiles("files")
        chain = transforms.chain_of_members(listed, _start_of(image, files))
        if missing and (chain.rest or chain.random):
            return f"{missing} draws random numbers and cannot be replaced, so samples cannot be compared"
        readers.append(Reader(files, chain))
    compared = 0
    for index, inner in chosen.items():
        with fetch.untouched_generators():
            why = _compare(copied, code, readers, inner)
        if why:
            return f"sample {index} of the dataset's own __getitem__ differs from the engine's: {why}"
        compared += why is not None
    if compared:
        return ""
    as_stored = any(not image.mode for image in code.images)
    return _NOT_READ + (_CONVERT if as_stored else "")


def _compare(copied: DatasetCopy, code: SampleCode, readers: list[Reader], index: Any) -> str | None:
    """Returns the difference between the two samples; empty if they are equal; None if only the dataset itself can read
    the sample.
    """
    try:
        paths, others = code.row(index)
        if not all(image.mode or is_stored_as_rgb(path) for image, path in zip(code.images, paths, strict=True)):
            return None
        ours = [reader.read(path) for reader, path in zip(readers, paths, strict=True)]
    except Exception:  # the dataset reads such a sample itself
        return None
    try:
        theirs = copied.read(index)
    except Exception as error:
        return f"it raises {type(error).__name__}: {error}"
    items = theirs if code.kind is not None else (theirs,)
    if code.kind is not None and type(theirs) is not code.kind:
        return f"it is a {type(theirs).__qualname__}"
    if code.kind is dict:
        if tuple(theirs) != code.keys:
            return f"its keys are {list(theirs)}"
        items = tuple(theirs.values())
    expected = list(others)
    for image, ours_of_image in zip(code.images, ours, strict=True):
        expected.insert(image.at, ours_of_image)
    if len(items) != len(expected):
        return f"it has {len(items)} values"
    for position, (mine, other) in enumerate(zip(expected, items, strict=True)):
        if not _equal(mine, other):
            is_image = any(position == image.at for image in code.images)
            return "its pixels" if is_image else f"value {position}: {other!r:.60}, not {mine!r:.60}"
    return ""


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and _same_numbers(one.detach().numpy(), other.detach().numpy())
    if isinstance(one, numpy.ndarray) or type(one).__module__.startswith("PIL."):
        return getattr(one, "mode", None) == getattr(other, "mode", None) and _same_numbers(
            numpy.asarray(one), numpy.asarray(other)
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    try:
        return bool(one == other) or bool(one != one and other != other)
    except Exception:
        return False


def _same_numbers(one: numpy.ndarray, other: numpy.ndarray) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype == numpy.float32 and one.ndim == 3:  # an image whose transforms could not be cut
        return bool(numpy.allclose(one, other, rtol=_LAST_BITS, atol=_LAST_BITS))
    return one.tobytes() == other.tobytes()


def _start_of(image: ImageCode, files: sources.GivenFiles) -> transforms.Chain:
    return transforms.Chain(own_classes.decoded(files, image), channels=own_classes.channels(image))


def _pixel_members(code: SampleCode) -> tuple[list[list[Any]], dict[Any, int]]:
    """Returns the first transforms of each image, as long as they are supported, draw no random numbers and return
    pixels; and the number of these transforms in each step.

    Images may share a step's object. The number of its first transforms that are used is then limited by the image
    that supports the fewest of them.
    """
    counts: dict[Any, int] = {}
    while True:
        found = [_members_within(image, counts) for image in code.images]
        lowest: dict[Any, int] = {}
        for _, taken in found:
            for key, count in taken.items():
                lowest[key] = min(count, lowest.get(key, count))
        if lowest == counts:
            return [members for members, _ in found], counts
        counts = lowest


def _members_within(image: ImageCode, counts: dict[Any, int]) -> tuple[list[Any], dict[Any, int]]:
    found: list[Any] = []
    taken: dict[Any, int] = {}
    chain = _start_of(image, sources.GivenFiles("files"))
    ended = False
    for step in image.steps:
        own = transforms.members_of(step.transform)
        most = counts.get(key_of(step), len(own))
        count = 0
        while not ended and count < min(most, len(own)):
            longer = transforms.chain_of_members([own[count]], chain)
            if longer.rest or longer.random or longer.crops or longer.flows not in (transforms.PIL, transforms.BYTES):
                break
            found.append(own[count])
            count, chain = count + 1, longer
        ended = ended or count < len(own)
        taken[key_of(step)] = min(count, taken.get(key_of(step), count))
    return found, taken
