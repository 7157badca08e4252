# SPDX-License-Identifier: Apache-2.0
"""MosaicML's streaming with torch's CPU build, and its values as JSON. For scripts run by its interpreter."""

import sys
from decimal import Decimal
from importlib.machinery import ModuleSpec
from unittest import mock

import numpy as np
from PIL import Image

# torchvision's wheel cannot be loaded with torch's CPU build; streaming uses base classes from it that are not needed
# here
for name in ("torchvision", "torchvision.datasets", "torchvision.transforms", "torchvision.transforms.functional"):
    sys.modules[name] = mock.MagicMock(VisionDataset=object, CIFAR10=object, __spec__=ModuleSpec(name, None))

from streaming import CSVWriter, JSONWriter, MDSWriter, StreamingDataset, TSVWriter, XSVWriter  # noqa: E402
from streaming.base.hashing import get_hashes  # noqa: E402

__all__ = [
    "CSVWriter",
    "JSONWriter",
    "MDSWriter",
    "StreamingDataset",
    "TSVWriter",
    "XSVWriter",
    "get_hashes",
    "shown",
]


def shown(value):
    if isinstance(value, np.ndarray):
        return [value.dtype.name, list(value.shape), value.tobytes().hex()]
    if isinstance(value, Image.Image):
        return shown(np.asarray(value))
    if isinstance(value, bytes):
        return value.hex()
    return value.item() if isinstance(value, np.generic) else str(value) if isinstance(value, Decimal) else value
