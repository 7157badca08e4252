# SPDX-License-Identifier: Apache-2.0
"""Integration with ignite: makes `ignite.distributed.auto_dataloader` create Feedline's loaders."""

from __future__ import annotations

import importlib

from ..torch_loader.data_loader import DataLoader
from .replaced import Replaced


def install() -> Replaced:
    """Makes `ignite.distributed.auto_dataloader` create Feedline's loaders. Call this function before creating loaders.

    Raises:
        ImportError: ignite is not installed.
    """
    return Replaced([(importlib.import_module("ignite.distributed.auto"), "DataLoader", DataLoader)])
