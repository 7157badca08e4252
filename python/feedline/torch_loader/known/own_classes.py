# SPDX-License-Identifier: Apache-2.0
"""Users' classes whose `__getitem__` opens an image, transforms it and looks the other values up."""

from __future__ import annotations

import importlib
import types
from typing import Any

from ...data.dataset import Dataset
from . import sources, transforms
from .sample_code import SampleCode

_PACKAGES = ("torch", "torchvision", "numpy", "datasets", "timm", "webdataset", "feedline")


def is_one(dataset: Any) -> bool:
    """Whether `__getitem__` of the dataset's class is the user's own Python function."""
    method = getattr(type(dataset), "__getitem__", None)
    if not isinstance(method, types.FunctionType):
        return False
    return str(method.__module__).partition(".")[0] not in _PACKAGES


def decoded(files: sources.GivenFiles, code: SampleCode) -> Dataset:
    """The images as the class converts them, before its transforms."""
    if code.turned:
        return files.dataset.decode(code.mode or "RGB", apply_exif_orientation=True)
    return files.dataset.decode("L") if code.mode == "L" else files.dataset


def channels(code: SampleCode) -> int:
    return 1 if code.mode == "L" else 3


def chain(code: SampleCode, dataset: Dataset) -> transforms.Chain:
    return transforms.chain_of([step.transform for step in code.steps], dataset, channels(code))


def front(code: SampleCode, dataset: Dataset) -> transforms.Chain:
    """Like chain(), but empty if it saves nothing."""
    return transforms.front_of([step.transform for step in code.steps], dataset, channels(code))


def read_by_pillow(code: SampleCode, path: Any) -> Any:
    """The image as the class reads it, before its transforms."""
    image = importlib.import_module("PIL.Image").open(path)
    if code.turned:
        image = importlib.import_module("PIL.ImageOps").exif_transpose(image)
    return image.convert(code.mode) if code.mode else image
