# SPDX-License-Identifier: Apache-2.0
"""Integration with Hugging Face's Trainer, which creates its loaders itself and has Accelerate recreate them."""

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
    """Makes `Trainer` and its subclasses use Feedline's loaders from now on, for training, evaluation and prediction.

    Args:
        stats: whether the Trainer logs the :class:`Meter` values of the training loader with its loss, so that they
            reach W&B, MLflow, TensorBoard and other integrations.

    Raises:
        ImportError: Transformers, or Accelerate, which its Trainer needs, is not installed.
    """
    module = importlib.import_module("transformers.trainer")
    names: list[tuple[Any, str, Any]] = [(module, "DataLoader", DataLoader)]
    if stats:
        names += _logging_stats(module.Trainer)
    return _Both(accelerate.install(), names)


def _logging_stats(trainer_class: Any) -> list[tuple[Any, str, Any]]:
    """Wraps methods of `Trainer` to log the loader's statistics together with the training loss."""
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
