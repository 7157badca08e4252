# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer: it makes its loaders itself, and Accelerate makes them anew."""

from __future__ import annotations

import importlib

from ..drop_in.data_loader import DataLoader
from . import accelerate
from .replaced import Replaced


class _Both(Replaced):
    def __init__(self, within: Replaced, module: object) -> None:
        super().__init__([(module, "DataLoader", DataLoader)])
        self._within = within

    def uninstall(self) -> None:
        super().uninstall()
        self._within.uninstall()


def install() -> Replaced:
    """Loaders of `Trainer` and its subclasses are Feedline's from now on, for training, evaluation and prediction.

    Raises:
        ImportError: Transformers, or Accelerate, which its Trainer needs, is not installed.
    """
    return _Both(accelerate.install(), importlib.import_module("transformers.trainer"))
