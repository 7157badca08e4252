# SPDX-License-Identifier: Apache-2.0
"""Training runs with Lightning. As a script: one of two ranks, which writes its results to the given path."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import lightning
import torch
from tiny_training import LOADERS, Points, leave_group, loss_of, model, worker_options

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Regression(lightning.LightningModule):
    """Records the loaders that it receives, the losses, and the samples."""

    def __init__(self) -> None:
        super().__init__()
        self.model = model()
        self.losses: list[float] = []
        self.samples: list[list[int]] = []
        self.validated: list[list[int]] = []

    def training_step(self, batch, number):
        loss = loss_of(self.model, batch)
        self.losses.append(loss.item())
        self.samples.append(batch["index"].tolist())
        return loss

    def validation_step(self, batch, number):
        self.validated.append(batch["index"].tolist())

    def predict_step(self, batch, number):
        return batch["index"].tolist()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(**more: Any) -> lightning.Trainer:
    options = {"max_epochs": 2, "logger": False, "enable_checkpointing": False, "num_sanity_val_steps": 0, **more}
    return lightning.Trainer(accelerator="cpu", enable_progress_bar=False, enable_model_summary=False, **options)


def run(loader_class: Any, ranks: int, **more: Any) -> dict[str, Any]:
    """Returns losses and samples of a fit, and of a prediction, for which Lightning recreates the loader even on one
    rank.
    """
    torch.manual_seed(5)
    more.update(worker_options(more.get("num_workers", 0)))
    train = loader_class(Points(), 8, shuffle=True, **more)
    validate = loader_class(Points(13), batch_size=4, **more)
    module = Regression()
    fitting = trainer(devices=ranks, strategy="ddp" if ranks > 1 else "auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitting.fit(module, train, validate)
        used = fitting.train_dataloader
        predicting = trainer(devices=ranks, strategy="ddp" if ranks > 1 else "auto")
        predictions = predicting.predict(module, loader_class(Points(13), batch_size=4, **more))
    assert type(used) is loader_class
    assert ranks == 1 or used is not train, "a DistributedSampler was put in, so the loader was made anew"
    indices = [list(part) for part in predicting.predict_loop.epoch_batch_indices]
    return {
        "losses": module.losses,
        "samples": module.samples,
        "validated": module.validated,
        "predictions": predictions,
        "indices": indices,
        "sampler": type(used.sampler).__name__,
    }


def every_run(ranks: int) -> dict[str, Any]:
    runs: dict[str, Any] = {}
    for options in ({}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}, {"drop_last": True}):
        runs[f"{options}"] = {name: run(loader, ranks, **options) for name, loader in LOADERS.items()}
    return runs


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(every_run(2)))
    leave_group()
