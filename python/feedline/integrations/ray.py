# SPDX-License-Identifier: Apache-2.0
"""Ray Train: loaders that `ray.train.torch.prepare_data_loader` makes are Feedline's."""

from __future__ import annotations

import importlib

from ..torch_loader.data_loader import DataLoader
from .replaced import Replaced


def install() -> Replaced:
    """Loaders that `ray.train.torch.prepare_data_loader` makes are Feedline's from now on.

    Call it in the function that each worker trains with.

    Raises:
        ImportError: Ray Train is not installed.
    """
    return Replaced([(importlib.import_module("ray.train.torch.train_loop_utils"), "DataLoader", DataLoader)])
