# SPDX-License-Identifier: Apache-2.0
"""Provides placeholders for the torchvision names that MosaicML Streaming imports; import this module first. They are
used only by datasets that are not used here, and torchvision's wheel cannot be loaded with a torch without CUDA.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from types import ModuleType


def _is_there() -> bool:
    try:
        importlib.import_module("torchvision")
    except Exception:
        return False
    return True


if not _is_there():
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    for name, stands_in in {
        "torchvision": (),
        "torchvision.datasets": ("VisionDataset",),
        "torchvision.datasets.folder": ("find_classes",),
        "torchvision.transforms": (),
        "torchvision.transforms.functional": ("to_tensor",),
    }.items():
        module = ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        for one in stands_in:
            setattr(module, one, type(one, (), {}))
        sys.modules[name] = module
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)
