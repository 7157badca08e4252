# SPDX-License-Identifier: Apache-2.0
"""Feedline: a data-loading engine for PyTorch.

::

    import feedline

    train = (feedline.open("imagenet/train")
             .random_resized_crop(224)
             .random_horizontal_flip()
             .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD))
    for image, label in train.loader(batch_size=256, shuffle=True): ...

Nothing starts at import, and neither torch nor NumPy is imported before the first array is made.
"""

from typing import TYPE_CHECKING, Any

from ._engine import Inspection, InspectionFinding
from .data import presets
from .data.chain import Chain, chain
from .data.dataset import Dataset
from .data.facts import DecodeLimit, Drawn, FieldSpec
from .data.images import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    ImageInfo,
    active_simd_variant,
    decode_image,
    follow_pillow,
    image_info,
    resize_image,
    simd_variants,
)
from .data.mixtures import mix
from .data.pixels import pack_pixels
from .data.ragged_values import ragged
from .data.sequences import arrays, tokens
from .data.sources import inspect, open
from .data.view_list import Views, views
from .errors import (
    ConfigError,
    DataError,
    Error,
    RecordError,
    SettingsWarning,
    StalledError,
    StorageError,
    WorkerDiedError,
)
from .loader.loader import BadSample, Loader
from .loader.tuned_settings import load_settings
from .trace.profiling import profile
from .version import installed_version as _installed_version

if TYPE_CHECKING:
    from .data.shared_list import shared as shared  # imports NumPy
    from .drop_in.data_loader import DataLoader as DataLoader  # not in __all__: a star import would import torch
    from .drop_in.data_loader import StatefulDataLoader as StatefulDataLoader
    from .samplers.buckets import BucketBatchSampler as BucketBatchSampler
    from .samplers.distributed import DistributedSampler as DistributedSampler

__version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _installed_version()
    if name in ("DataLoader", "StatefulDataLoader"):  # imports torch
        from .drop_in import data_loader

        return getattr(data_loader, name)
    if name == "shared":  # imports NumPy
        from .data import shared_list

        return shared_list.shared
    if name == "DistributedSampler":
        from .samplers import distributed

        return distributed.DistributedSampler
    if name == "BucketBatchSampler":
        from .samplers import buckets

        return buckets.BucketBatchSampler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext feedline``: the cell magic ``%%feedline``, which says where a cell's time goes."""
    from .notebook.magic import load

    load(shell)


__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "BadSample",
    "Chain",
    "ConfigError",
    "DataError",
    "Dataset",
    "DecodeLimit",
    "Drawn",
    "Error",
    "FieldSpec",
    "ImageInfo",
    "Inspection",
    "InspectionFinding",
    "Loader",
    "RecordError",
    "SettingsWarning",
    "StalledError",
    "StorageError",
    "Views",
    "WorkerDiedError",
    "__version__",
    "active_simd_variant",
    "arrays",
    "chain",
    "decode_image",
    "follow_pillow",
    "image_info",
    "inspect",
    "load_settings",
    "mix",
    "open",
    "pack_pixels",
    "presets",
    "profile",
    "ragged",
    "resize_image",
    "simd_variants",
    "tokens",
    "views",
]
