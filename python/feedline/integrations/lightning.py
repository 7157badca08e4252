# SPDX-License-Identifier: Apache-2.0
"""Integration with Lightning: sets the epoch of loaders, and passes their statistics to the trainer's loggers."""

from __future__ import annotations

import importlib
from typing import Any

from ..torch_loader.data_loader import DataLoader
from .meter import Meter, feedline_loader

try:
    _lightning = importlib.import_module("lightning.pytorch")
except ImportError:  # the package's other name
    _lightning = importlib.import_module("pytorch_lightning")
_Callback: Any = _lightning.Callback


class FollowEpochs(_Callback):  # type: ignore[misc]
    """A callback that makes `seed=` and `set_epoch` follow the trainer's epoch for any loader.

    ::

        trainer = lightning.Trainer(callbacks=[FollowEpochs()], ...)
        trainer.fit(module, feedline.DataLoader(dataset, 64, shuffle=True, seed=0), ckpt_path="last")

    Lightning loads a loader's state only from a checkpoint saved within an epoch. After resuming from a checkpoint
    saved at the end of an epoch, the loader would start at epoch 0 and repeat its order and random numbers. A loader
    that is recreated by ``reload_dataloaders_every_n_epochs`` would also start at epoch 0.
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Handles an epoch that resumes from a checkpoint, for which Lightning does not call the start hook."""
        _follow(trainer)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Runs before the epoch's first batch is requested."""
        _follow(trainer)


class LogLoaderStats(_Callback):  # type: ignore[misc]
    """A callback that passes the :class:`Meter` values of the training loaders to the trainer's loggers.

    The callback logs at the steps of ``log_every_n_steps``, separately for every rank's loader; the loggers decide
    which rank writes. With several loaders the names begin with ``data/0/``, ``data/1/`` and so on.
    """

    def __init__(self, prefix: str = "data/") -> None:
        """`prefix`: text prepended to every name."""
        super().__init__()
        self._prefix = prefix
        self._meters: dict[int, tuple[Any, Meter]] = {}  # by index, with the meter's loader

    def on_train_batch_end(self, trainer: Any, *batch: Any) -> None:
        """Logs the current statistics if the trainer logs at this step."""
        if not trainer._logger_connector.should_update_logs:
            return
        numbers: dict[str, float] = {}
        for meter in self._meters_of(trainer):
            numbers |= meter()
        for logger in trainer.loggers if numbers else ():
            logger.log_metrics(numbers, step=trainer.fit_loop.epoch_loop._batches_that_stepped)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Creates the meters, so that rates are measured from the epoch's start, not from the first logged step."""
        self._meters_of(trainer)

    def _meters_of(self, trainer: Any) -> list[Meter]:
        combined = trainer.fit_loop._combined_loader
        loaders = [feedline_loader(loader) for loader in (combined.flattened if combined is not None else [])]
        for index, loader in enumerate(loaders):
            if loader is not None and (index not in self._meters or self._meters[index][0] is not loader):
                prefix = f"{self._prefix}{index}/" if len(loaders) > 1 else self._prefix
                self._meters[index] = (loader, Meter(loader, prefix))
        return [self._meters[index][1] for index, loader in enumerate(loaders) if loader is not None]


def _follow(trainer: Any) -> None:
    loop = trainer.fit_loop
    stale = [
        loader
        for loader in (loop._combined_loader.flattened if loop._combined_loader is not None else [])
        if isinstance(loader, DataLoader) and _begins_otherwise(loader, trainer.current_epoch)
    ]
    for loader in stale:
        loader.set_epoch(trainer.current_epoch)
    if stale and loop._data_fetcher is not None:
        iter(loop._data_fetcher)  # Lightning created its iterator before any callback of this epoch


def _begins_otherwise(loader: DataLoader[Any], epoch: int) -> bool:
    """Returns whether the loader has begun an epoch with a different number and has not delivered a batch of it yet."""
    stats = loader.stats()
    return not stats["batches"] and loader._progress.cursor is not None and stats["epoch"] != epoch
