# SPDX-License-Identifier: Apache-2.0
"""Lightning: loaders are told which epoch begins."""

from __future__ import annotations

import importlib
from typing import Any

from ..drop_in.data_loader import DataLoader

try:
    _lightning = importlib.import_module("lightning.pytorch")
except ImportError:  # the package by its other name
    _lightning = importlib.import_module("pytorch_lightning")
_Callback: Any = _lightning.Callback


class FollowEpochs(_Callback):  # type: ignore[misc]
    """A callback after which `seed=` and `set_epoch` go by the trainer's epoch, whatever made the loader.

    ::

        trainer = lightning.Trainer(callbacks=[FollowEpochs()], ...)
        trainer.fit(module, feedline.DataLoader(dataset, 64, shuffle=True, seed=0), ckpt_path="last")

    Lightning loads the state of a loader only where a checkpoint is from within an epoch. One of an epoch's end is gone
    on with by a loader that begins at epoch 0, so its order and its random numbers would come again; so would those of
    a loader that ``reload_dataloaders_every_n_epochs`` makes anew.
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Of an epoch whose start has no hook of its own: one that a checkpoint goes on with."""
        _follow(trainer)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the epoch's first batch is taken."""
        _follow(trainer)


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
        iter(loop._data_fetcher)  # Lightning made its iterator before any callback of this epoch


def _begins_otherwise(loader: DataLoader[Any], epoch: int) -> bool:
    """Whether the epoch that was begun for the trainer's, and of which nothing was taken, has another number."""
    stats = loader.stats()
    return not stats["batches"] and loader._course.cursor is not None and stats["epoch"] != epoch
