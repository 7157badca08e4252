# SPDX-License-Identifier: Apache-2.0
"""Recognises users' classes whose `__getitem__` opens images, transforms them and looks up the other values."""

from __future__ import annotations

import collections
import importlib
import types
from typing import Any

from ....data.dataset import Dataset
from ..datasets import sources
from ..transforms import transforms
from .sample_code import ImageCode, Row, SampleCode, sample_code
from .sample_values import Refused, Step

_PACKAGES = ("torch", "torchvision", "numpy", "datasets", "timm", "webdataset", "feedline")


def is_one(dataset: Any) -> bool:
    """Returns whether `__getitem__` of the dataset's class is a Python function of the user."""
    method = getattr(type(dataset), "__getitem__", None)
    if not isinstance(method, types.FunctionType):
        return False
    return str(method.__module__).partition(".")[0] not in _PACKAGES


def code_of(dataset: Any) -> SampleCode:
    """Returns the code of a user's class, or equivalent code for an image folder.

    Raises:
        Refused: a part of the class is not recognised.
    """
    return _folder_code(dataset) if sources.is_image_folder(dataset) else sample_code(dataset)


def _folder_code(folder: Any) -> SampleCode:
    why = sources.why_not_readable(folder)
    if why:
        raise Refused(None, why)
    target_transform = sources.target_transform_of(folder)

    def row(index: Any) -> Row:
        path, target = sources.samples_of(folder)[index]
        return (path,), (target if target_transform is None else target_transform(target),)

    image = ImageCode(0, "RGB", False, (Step(sources.transform_of(folder), ("self", "transform")),))
    called = () if target_transform is None else (("self", "target_transform"),)
    return SampleCode(row, tuple, (), (image,), 2, called)


def why_not_apart(code: SampleCode) -> str:
    """Returns why a sample's images cannot be read independently of each other, or an empty string if they can."""
    if len(code.images) == 1:
        return ""
    dataset = sources.GivenFiles("files").dataset
    for image in code.images:
        made = chain(image, decoded(sources.GivenFiles("files"), image))
        if made.rest:
            return f"a sample has several images, whose transforms must all be known: {made.why}"
    made_by = [tuple(step.call for step in image.steps) for image in code.images if image.steps]
    if len(set(made_by)) < len(made_by):
        return "a sample contains the same image twice"
    calls = collections.Counter(call for calls in made_by for call in calls)
    shared = [step.transform for image in code.images for step in image.steps if calls[step.call] > 1]
    if any(transforms.chain_of(transform, dataset).random for transform in shared):
        return "several images of a sample share the result of a random transform"
    return ""


def decoded(files: sources.GivenFiles, code: ImageCode) -> Dataset:
    """Returns the images as the class converts them, before their transforms."""
    if code.turned:
        return files.dataset.decode(code.mode or "RGB", apply_exif_orientation=True)
    return files.dataset.decode("L") if code.mode == "L" else files.dataset


def channels(code: ImageCode) -> int:
    return 1 if code.mode == "L" else 3


def chain(code: ImageCode, dataset: Dataset) -> transforms.Chain:
    return transforms.chain_of([step.transform for step in code.steps], dataset, channels(code))


def front(code: ImageCode, dataset: Dataset) -> transforms.Chain:
    """Like chain(), but empty if running the transforms natively saves no time."""
    return transforms.front_of([step.transform for step in code.steps], dataset, channels(code))


def read_by_pillow(code: ImageCode, path: Any) -> Any:
    """Returns the image as the class reads it, before its transforms."""
    image = importlib.import_module("PIL.Image").open(path)
    if code.turned:
        image = importlib.import_module("PIL.ImageOps").exif_transpose(image)
    return image.convert(code.mode) if code.mode else image
