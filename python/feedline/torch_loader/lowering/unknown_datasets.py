# SPDX-License-Identifier: Apache-2.0
"""Explains why the engine does not read a dataset, and suggests datasets that it would read."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable
from typing import Any

from ..native.plans import Plan, Reason
from .datasets.sources import leaves
from .own_code import own_names

UNKNOWN = "is not a dataset that the engine knows"
STREAM = "an IterableDataset produces its samples itself"
_PACKAGES = ("torch", "torchvision", "datasets", "timm", "webdataset", "feedline")
_NO_METHODS = ("Dataset", "IterableDataset", "Generic", "VisionDataset", "object")
# Names in a function that reads an image file.
_IMAGE_READERS = {
    *("Image", "imread", "imdecode", "read_image", "decode_image", "decode_jpeg", "pil_loader", "default_loader"),
    *("cv2", "imageio", "iio", "turbojpeg"),
}
_PAGE = "docs/lowering.md lists what runs natively"


def why_unknown(dataset: Any, part: str = "") -> str:
    """`part`: the first part of the dataset's class that is not understood."""
    kind = type(dataset)
    base = _known_base(kind)
    if base is not None:
        return f"{kind.__qualname__} {UNKNOWN}: it extends {base.__name__}, whose methods it may change"
    if isinstance(getattr(kind, "__getitem__", None), types.FunctionType):
        if part and reads_images(kind):
            return f"{kind.__qualname__} {UNKNOWN}: {part}"
        return f"{kind.__qualname__} {UNKNOWN}: its __getitem__ is Python code"
    return f"{kind.__qualname__} {UNKNOWN}"


def next_step(dataset: Any, plan: Plan) -> str:
    """Suggests what to use in place of `dataset` to run natively; empty if the dataset is supported or must not run
    natively.
    """
    whys = [stage.why for stage in plan.stages] if isinstance(plan, Reason) else []
    if any(why == STREAM for why in whys):
        return f'feedline.open("SHARDS").loader() reads tar, Parquet, Arrow, MDS, LitData and other shards; {_PAGE}'
    if not any(UNKNOWN in why for why in whys):
        return ""
    part = plan.part if isinstance(plan, Reason) else None
    kind = type(leaves(dataset)[0] if part is None else part)
    base = _known_base(kind)
    if base is not None:
        with_code = ", with your code in its transform" if base.__module__.startswith("torchvision.") else ""
        return f"pass {base.__name__} itself to the loader{with_code}; {_PAGE}"
    call = own_names.replacement(kind)
    if call:
        return f"write {call}; {own_names.advice(kind)}{_PAGE}"
    if reads_images(kind):
        return f'for images in files, use torchvision.datasets.ImageFolder or feedline.open("FOLDER").loader(); {_PAGE}'
    return (
        "for files and shards, use feedline.open(...).loader(); for rows in memory, use "
        f"torch.utils.data.TensorDataset or feedline.arrays(...); {_PAGE}"
    )


def _known_base(kind: type) -> type | None:
    """Returns the class of a package from which `kind` inherits methods; None if there is none."""
    for base in kind.__mro__[1:]:
        if base.__module__.partition(".")[0] in _PACKAGES and base.__name__ not in _NO_METHODS:
            return base
    return None


def reads_images(kind: type) -> bool:
    values = [value for base in kind.__mro__ for value in vars(base).values()]
    methods = [inspect.unwrap(value) for value in values if isinstance(value, types.FunctionType)]
    return not _IMAGE_READERS.isdisjoint(name for method in methods for name in _names_of(method.__code__))


def _names_of(code: types.CodeType) -> Iterable[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_of(constant)
