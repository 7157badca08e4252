# SPDX-License-Identifier: Apache-2.0
"""Feedline: a data-loading engine for PyTorch.

::

    import feedline

    train = (feedline.open("imagenet/train")
             .random_resized_crop(224)
             .random_horizontal_flip()
             .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD))
    for image, label in train.loader(batch_size=256, shuffle=True): ...

Importing feedline starts no threads or processes. The module that defines a name is imported, together with the engine,
when the name is first used. Neither NumPy nor torch is imported before the first array is created, except that
`feedline.DataLoader` imports torch.
"""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from ._engine import Inspection, InspectionFinding
    from .data import presets
    from .data.dataset import Dataset
    from .data.images import (
        ImageInfo,
        active_simd_variant,
        decode_image,
        follow_pillow,
        image_info,
        resize_image,
        simd_variants,
    )
    from .data.memory.in_memory import files, table
    from .data.memory.ragged_values import ragged
    from .data.memory.sequences import arrays, tokens
    from .data.memory.shared_list import shared as shared  # imports NumPy
    from .data.mixtures import mix
    from .data.ops.chain import Chain, chain
    from .data.packed_sequences import PackedSequences
    from .data.pixels import pack_pixels
    from .data.plugins import Plugin, format, include_folder, load_plugin, operation
    from .data.sources import inspect, open
    from .data.specs import DecodeLimit, Drawn, FieldSpec
    from .data.view_list import Views, views
    from .imagenet import IMAGENET_MEAN, IMAGENET_STD
    from .loader.batches import Batch
    from .loader.loader import BadSample, Loader
    from .loader.packed_loader import PackedLoader
    from .loader.tuned_settings import load_settings
    from .samplers.buckets import BucketBatchSampler as BucketBatchSampler
    from .samplers.distributed import DistributedSampler as DistributedSampler
    from .serving.process_metrics import MetricsServer, serve_metrics
    from .torch_loader.data_loader import DataLoader as DataLoader  # not in __all__: a star import would import torch
    from .torch_loader.data_loader import StatefulDataLoader as StatefulDataLoader
    from .torch_loader.workers.pool import WorkerPool as WorkerPool
    from .trace.profiling import profile

__version__: str

# Maps names to the module that is imported on first use; a test compares this with __all__.
_NAMES_OF = {
    "_engine": ("Inspection", "InspectionFinding"),
    "data.ops.chain": ("Chain", "chain"),
    "data.dataset": ("Dataset",),
    "data.specs": ("DecodeLimit", "Drawn", "FieldSpec"),
    "data.images": (
        "ImageInfo",
        "active_simd_variant",
        "decode_image",
        "follow_pillow",
        "image_info",
        "resize_image",
        "simd_variants",
    ),
    "data.memory.in_memory": ("files", "table"),
    "data.mixtures": ("mix",),
    "data.packed_sequences": ("PackedSequences",),
    "data.pixels": ("pack_pixels",),
    "data.plugins": ("Plugin", "format", "include_folder", "load_plugin", "operation"),
    "data.memory.ragged_values": ("ragged",),
    "data.memory.sequences": ("arrays", "tokens"),
    "data.memory.shared_list": ("shared",),
    "data.sources": ("inspect", "open"),
    "data.view_list": ("Views", "views"),
    "torch_loader.data_loader": ("DataLoader", "StatefulDataLoader"),
    "torch_loader.workers.pool": ("WorkerPool",),
    "imagenet": ("IMAGENET_MEAN", "IMAGENET_STD"),
    "loader.batches": ("Batch",),
    "loader.loader": ("BadSample", "Loader"),
    "loader.packed_loader": ("PackedLoader",),
    "loader.tuned_settings": ("load_settings",),
    "samplers.buckets": ("BucketBatchSampler",),
    "samplers.distributed": ("DistributedSampler",),
    "serving.process_metrics": ("MetricsServer", "serve_metrics"),
    "trace.profiling": ("profile",),
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}
_MODULES = {"_engine": "_engine", "presets": "data.presets"}  # names of submodules


if not TYPE_CHECKING:  # type checkers would otherwise accept any name of the package, as Any

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from .version import installed_version

            value: Any = installed_version()
        elif name in _MODULE_OF or name in _MODULES:
            from importlib import import_module
            from importlib.util import find_spec

            try:
                module = import_module(f"{__name__}.{_MODULE_OF.get(name) or _MODULES[name]}")
                value = getattr(module, name) if name in _MODULE_OF else module
            except ImportError:
                if find_spec(f"{__name__}._engine") is not None:
                    raise
                from .no_engine import advice, stand_in

                if name == "_engine":
                    raise ModuleNotFoundError(advice("this module"), name=f"{__name__}._engine") from None
                value = stand_in(name)
        else:
            import sys

            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        globals()[name] = value  # caches it for later uses
        return value


def __dir__() -> list[str]:
    """Returns the public names, including those that are not imported yet, and the module's double-underscore names."""
    return sorted({*__all__, *_MODULE_OF, *(name for name in globals() if name.startswith("__"))})


def load_ipython_extension(shell: Any) -> None:
    """Handles ``%load_ext feedline``: registers the cell magic ``%%feedline``, which profiles a cell."""
    from .notebook.magic import load

    load(shell)


__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "BadSample",
    "Batch",
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
    "MetricsServer",
    "PackedLoader",
    "PackedSequences",
    "Plugin",
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
    "files",
    "follow_pillow",
    "format",
    "image_info",
    "include_folder",
    "inspect",
    "load_plugin",
    "load_settings",
    "mix",
    "open",
    "operation",
    "pack_pixels",
    "presets",
    "profile",
    "ragged",
    "resize_image",
    "serve_metrics",
    "simd_variants",
    "table",
    "tokens",
    "views",
]
