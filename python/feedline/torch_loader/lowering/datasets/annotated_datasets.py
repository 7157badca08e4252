# SPDX-License-Identifier: Apache-2.0
"""Recognises, by exact type, torchvision's COCO and VOC datasets, whose targets are annotations or masks.

The engine reads the images, and the dataset's own code creates the targets.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_KINDS = {"CocoDetection": "coco", "CocoCaptions": "coco", "VOCDetection": "voc", "VOCSegmentation": "voc"}


def is_one(dataset: Any) -> bool:
    name = type(dataset).__name__
    module = sys.modules.get(f"torchvision.datasets.{_KINDS[name]}") if name in _KINDS else None
    return module is not None and getattr(module, name, None) is type(dataset)


def why_not_readable(dataset: Any) -> str:
    """Returns why the engine does not read the images of this dataset, or an empty string if the engine reads them."""
    own = [name for name in vars(dataset) if callable(getattr(type(dataset), name, None))]
    if own:
        return f"{', '.join(own)} of this dataset object overrides its class"
    joint = dataset.transforms
    if joint is not None and type(joint) is not _standard():
        return "transforms= changes images and targets together"
    return ""


def transform_of(dataset: Any) -> Any:
    return getattr(dataset.transforms, "transform", None)


def target_transform_of(dataset: Any) -> Any:
    return getattr(dataset.transforms, "target_transform", None)


def path_of(dataset: Any, index: Any) -> str:
    """Returns the path of an image. Raises the dataset's own errors for an invalid index."""
    if not _is_coco(dataset):
        return os.fspath(dataset.images[index])
    if not isinstance(index, int):
        raise ValueError(f"Index must be of type integer, got {type(index)} instead.")
    return os.path.join(dataset.root, dataset.coco.loadImgs(dataset.ids[index])[0]["file_name"])


def target_of(dataset: Any, index: Any) -> Any:
    """Returns the target before target_transform."""
    if _is_coco(dataset):
        return dataset._load_target(dataset.ids[index])
    if type(dataset).__name__ == "VOCDetection":
        parse = sys.modules["torchvision.datasets.voc"].ET_parse  # type: ignore[attr-defined]
        return dataset.parse_voc_xml(parse(dataset.annotations[index]).getroot())
    from PIL import Image

    return Image.open(dataset.masks[index])


def read_by_pillow(dataset: Any, index: Any) -> Any:
    """Returns the image as the dataset reads it, before its transform."""
    from PIL import Image

    return Image.open(path_of(dataset, index)).convert("RGB")


def _is_coco(dataset: Any) -> bool:
    return _KINDS[type(dataset).__name__] == "coco"


def _standard() -> Any:
    return getattr(sys.modules.get("torchvision.datasets.vision"), "StandardTransform", None)
