# SPDX-License-Identifier: Apache-2.0
"""Integration with Ray Train: makes `ray.train.torch.prepare_data_loader` create Feedline's loaders."""

from __future__ import annotations

import importlib

from ..torch_loader.data_loader import DataLoader
from .replaced import Replaced


def install() -> Replaced:
    """Makes `ray.train.torch.prepare_data_loader` create Feedline's loaders from now on.

    Call this function in the training function of each worker.

    Raises:
        ImportError: Ray Train is not installed.
    """
    return Replaced([(importlib.import_module("ray.train.torch.train_loop_utils"), "DataLoader", DataLoader)])
