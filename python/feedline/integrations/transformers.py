# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer: it makes its loaders itself, and Accelerate makes them anew."""

from __future__ import annotations

import functools
import importlib
import weakref
from typing import Any

from ..torch_loader.data_loader import DataLoader
from . import accelerate
from .meter import Meter, feedline_loader
from .replaced import Replaced


class _Both(Replaced):
    def __init__(self, within: Replaced, names: list[tuple[Any, str, Any]]) -> None:
        super().__init__(names)
        self._within = within

    def uninstall(self) -> None:
        super().uninstall()
        self._within.uninstall()


def install(*, stats: bool = False) -> Replaced:
    """Loaders of `Trainer` and its subclasses are Feedline's from now on, for training, evaluation and prediction.

    Args:
        stats: what :class:`Meter` says of the training loader is part of what the Trainer logs with its loss, so it
            reaches W&B, MLflow, TensorBoard and whatever else the Trainer reports to.

    Raises:
        ImportError: Transformers, or Accelerate, which its Trainer needs, is not installed.
    """
    module = importlib.import_module("transformers.trainer")
    names: list[tuple[Any, str, Any]] = [(module, "DataLoader", DataLoader)]
    if stats:
        names += _logging_stats(module.Trainer)
    return _Both(accelerate.install(), names)


def _logging_stats(trainer_class: Any) -> list[tuple[Any, str, Any]]:
    """Methods of `Trainer` as they are, with the loader's numbers beside a training loss."""
    make, log = trainer_class.get_train_dataloader, trainer_class.log
    if hasattr(log, "_feedline_logs"):
        return []
    meters: weakref.WeakKeyDictionary[Any, Meter] = weakref.WeakKeyDictionary()

    @functools.wraps(make)
    def making(trainer: Any, *arguments: Any, **named: Any) -> Any:
        loader = make(trainer, *arguments, **named)
        meters.pop(trainer, None)
        if feedline_loader(loader) is not None:
            meters[trainer] = Meter(loader)
        return loader

    @functools.wraps(log)
    def logging(trainer: Any, logs: dict[str, float], *arguments: Any, **named: Any) -> Any:
        meter = meters.get(trainer)
        if meter is not None and "loss" in logs:
            logs.update(meter())
        return log(trainer, logs, *arguments, **named)

    logging._feedline_logs = True  # type: ignore[attr-defined]
    return [(trainer_class, "get_train_dataloader", making), (trainer_class, "log", logging)]
