# SPDX-License-Identifier: Apache-2.0
"""Datasets that the engine can read: torchvision's file datasets, including those inside torch's Subset and
ConcatDataset.
"""

from __future__ import annotations

import bisect
import os
import sys
from typing import Any

from torch.utils.data import ConcatDataset, Subset

from .... import _engine
from ....data.dataset import Dataset
from ....data.source_spec import SourceSpec
from . import annotated_datasets


def leaves(dataset: Any) -> list[Any]:
    """Returns the datasets inside exact Subsets and ConcatDatasets whose methods are torch's, in order."""
    if type(dataset) is Subset and _is_stock(dataset):
        return leaves(dataset.dataset)
    if type(dataset) is ConcatDataset and _is_stock(dataset):
        return [leaf for part in dataset.datasets for leaf in leaves(part)]
    return [dataset]


def _is_stock(dataset: Any) -> bool:
    """Returns whether the dataset and its class still have torch's methods, which other code may have replaced."""
    return _methods(type(dataset)) == _STOCK[type(dataset)] and "__getitems__" not in vars(dataset)


def _methods(kind: type) -> list[Any]:
    return [vars(kind).get(name) for name in ("__getitem__", "__getitems__", "__len__")]


_STOCK = {kind: _methods(kind) for kind in (Subset, ConcatDataset)}


def locate(dataset: Any, index: Any) -> tuple[Any, Any]:
    """Returns the innermost dataset that `dataset[index]` reads, and the index in it. Raises the datasets' own
    errors.
    """
    while True:
        kind = type(dataset)
        if kind is Subset:
            dataset, index = dataset.dataset, dataset.indices[index]
        elif kind is ConcatDataset:
            if index < 0:
                if -index > len(dataset):
                    raise ValueError("absolute value of index should not exceed dataset length")
                index += len(dataset)
            part = bisect.bisect_right(dataset.cumulative_sizes, index)
            before = dataset.cumulative_sizes[part - 1] if part else 0
            dataset, index = dataset.datasets[part], index - before
        else:
            return dataset, index


def distinct_leaves(dataset: Any) -> list[Any]:
    """Returns leaves() without repetitions, such as several subsets of one dataset."""
    return list({id(leaf): leaf for leaf in leaves(dataset)}.values())


def is_image_folder(dataset: Any) -> bool:
    """Returns whether `dataset` is torchvision's ImageFolder, DatasetFolder or ImageNet, or timm's dataset of such
    folders.
    """
    return is_timm(dataset) or any(
        _is(dataset, f"torchvision.datasets.{module}", name)
        for module, name in (("folder", "ImageFolder"), ("folder", "DatasetFolder"), ("imagenet", "ImageNet"))
    )


def is_timm(dataset: Any) -> bool:
    return _is(dataset, "timm.data.dataset", "ImageDataset") and _is(
        dataset.reader, "timm.data.readers.reader_image_folder", "ReaderImageFolder"
    )


def _is(thing: Any, module: str, name: str) -> bool:
    return type(thing) is getattr(sys.modules.get(module), name, None)


def samples_of(dataset: Any) -> Any:
    """Returns (path, target) for each file of an image folder."""
    return dataset.reader.samples if is_timm(dataset) else dataset.samples


def path_of(dataset: Any, index: Any) -> Any:
    """Returns the path of a sample's image."""
    if annotated_datasets.is_one(dataset):
        return annotated_datasets.path_of(dataset, index)
    return samples_of(dataset)[index][0]


def target_of(dataset: Any, index: Any) -> Any:
    """Returns a sample's target before its target_transform."""
    if annotated_datasets.is_one(dataset):
        return annotated_datasets.target_of(dataset, index)
    return samples_of(dataset)[index][1]


def transform_of(dataset: Any) -> Any:
    """Returns the transform that is called with only the image."""
    return annotated_datasets.transform_of(dataset) if annotated_datasets.is_one(dataset) else dataset.transform


def target_transform_of(dataset: Any) -> Any:
    if annotated_datasets.is_one(dataset):
        return annotated_datasets.target_transform_of(dataset)
    return dataset.target_transform


def read_by_pillow(dataset: Any, index: Any) -> Any:
    """Returns the image of a sample as the dataset reads it, before its transform."""
    if annotated_datasets.is_one(dataset):
        return annotated_datasets.read_by_pillow(dataset, index)
    path = path_of(dataset, index)
    if not is_timm(dataset):
        return dataset.loader(path)
    from PIL import Image

    return Image.open(path).convert(dataset.input_img_mode)


def _why_not_timms(dataset: Any) -> str:
    if dataset.load_bytes:
        return "with load_bytes=True, samples are bytes"
    if dataset.input_img_mode != "RGB":
        return f"input_img_mode={dataset.input_img_mode!r}: the engine reads only RGB"
    if dataset.additional_features is not None:
        return "with additional_features, samples contain more than an image and a label"
    return "" if isinstance(dataset.reader.samples, list) else "the dataset's samples are not a list"


def why_not_readable(dataset: Any) -> str:
    """Returns why the engine does not read the files of this dataset as the dataset does, or an empty string if it
    does.
    """
    if annotated_datasets.is_one(dataset):
        return annotated_datasets.why_not_readable(dataset)
    if is_timm(dataset):
        return _why_not_timms(dataset)
    import torchvision
    from torchvision.datasets import folder

    if dataset.loader not in (folder.default_loader, folder.pil_loader):
        return f"loader={getattr(dataset.loader, '__qualname__', dataset.loader)!r} is not torchvision's"
    if dataset.loader is folder.default_loader and torchvision.get_image_backend() != "PIL":
        return f"torchvision's image backend is {torchvision.get_image_backend()}"
    if not isinstance(dataset.samples, list):
        return "the dataset's samples are not a list"
    return ""


def given_files(dataset: Any) -> GivenFiles:
    return GivenFiles(os.fspath(getattr(dataset.reader if is_timm(dataset) else dataset, "root", "files")))


class GivenFiles:
    """Files that are passed to the engine while the engine runs, and their dataset before any operation."""

    def __init__(self, name: str) -> None:
        self.engine = _engine.GivenFiles(name)
        self.dataset = Dataset(self.engine.dataset, SourceSpec(name, "files"))
