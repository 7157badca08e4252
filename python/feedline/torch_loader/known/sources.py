# SPDX-License-Identifier: Apache-2.0
"""Datasets that the engine can read: torchvision's datasets of files, in torch's Subset and ConcatDataset."""

from __future__ import annotations

import bisect
import os
import sys
from typing import Any

from torch.utils.data import ConcatDataset, Subset

from ... import _engine
from ...data.dataset import Dataset
from ...data.source_spec import SourceSpec
from . import annotated_datasets


def leaves(dataset: Any) -> list[Any]:
    """The datasets inside exact Subsets and ConcatDatasets, in order."""
    if type(dataset) is Subset:
        return leaves(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return [leaf for part in dataset.datasets for leaf in leaves(part)]
    return [dataset]


def locate(dataset: Any, index: Any) -> tuple[Any, Any]:
    """The innermost dataset that `dataset[index]` reads, and the index there. Errors are the datasets' own."""
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


def is_image_folder(dataset: Any) -> bool:
    """torchvision's ImageFolder, DatasetFolder and ImageNet, and timm's dataset of such folders."""
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
    """(path, target) of each file of an image folder."""
    return dataset.reader.samples if is_timm(dataset) else dataset.samples


def path_of(dataset: Any, index: Any) -> Any:
    """The path of a sample's image."""
    if annotated_datasets.is_one(dataset):
        return annotated_datasets.path_of(dataset, index)
    return samples_of(dataset)[index][0]


def target_of(dataset: Any, index: Any) -> Any:
    """A sample's target, before its target_transform."""
    if annotated_datasets.is_one(dataset):
        return annotated_datasets.target_of(dataset, index)
    return samples_of(dataset)[index][1]


def transform_of(dataset: Any) -> Any:
    """The transform that is called with only the image."""
    return annotated_datasets.transform_of(dataset) if annotated_datasets.is_one(dataset) else dataset.transform


def target_transform_of(dataset: Any) -> Any:
    if annotated_datasets.is_one(dataset):
        return annotated_datasets.target_transform_of(dataset)
    return dataset.target_transform


def read_by_pillow(dataset: Any, index: Any) -> Any:
    """The image of a sample as the dataset reads it, before its transform."""
    if annotated_datasets.is_one(dataset):
        return annotated_datasets.read_by_pillow(dataset, index)
    path = path_of(dataset, index)
    if not is_timm(dataset):
        return dataset.loader(path)
    from PIL import Image

    return Image.open(path).convert(dataset.input_img_mode)


def _why_not_timms(dataset: Any) -> str:
    if dataset.load_bytes:
        return "load_bytes=True: its samples are bytes"
    if dataset.input_img_mode != "RGB":
        return f"input_img_mode={dataset.input_img_mode!r}: the engine reads RGB"
    if dataset.additional_features is not None:
        return "additional_features: samples have more than an image and a label"
    return "" if isinstance(dataset.reader.samples, list) else "its samples are not a list"


def why_not_readable(dataset: Any) -> str:
    """Why the engine does not read the files of such a dataset as its loader does; empty if it does."""
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
        return "its samples are not a list"
    return ""


def given_files(dataset: Any) -> GivenFiles:
    return GivenFiles(os.fspath(getattr(dataset.reader if is_timm(dataset) else dataset, "root", "files")))


class GivenFiles:
    """Files that are added to the engine while it runs, and the dataset of them, before any operation."""

    def __init__(self, name: str) -> None:
        self.engine = _engine.GivenFiles(name)
        self.dataset = Dataset(self.engine.dataset, SourceSpec(name, "files"))
