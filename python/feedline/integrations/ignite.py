# SPDX-License-Identifier: Apache-2.0
"""ignite: loaders that `ignite.distributed.auto_dataloader` makes are Feedline's."""

from __future__ import annotations

import importlib

from ..torch_loader.data_loader import DataLoader
from .replaced import Replaced


def install() -> Replaced:
    """Loaders that `ignite.distributed.auto_dataloader` makes are Feedline's from now on; before the loaders are made.

    Raises:
        ImportError: ignite is not installed.
    """
    return Replaced([(importlib.import_module("ignite.distributed.auto"), "DataLoader", DataLoader)])
