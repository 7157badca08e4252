# SPDX-License-Identifier: Apache-2.0
"""Training runs with Accelerate. As a script: one of two ranks, which writes its results to the given path."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import accelerate
import torch
from accelerate import Accelerator, DataLoaderConfiguration, skip_first_batches
from accelerate.state import AcceleratorState
from tiny_training import LOADERS, Points, PointStream, leave_group, loss_of, model, worker_options
from torch.utils.data import DataLoader as TorchLoader

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "usual": {},
    "dispatch_batches": {"dispatch_batches": True},
    "split_batches": {"split_batches": True},
    "uneven": {"even_batches": False},
    "unseeded sampler": {"use_seedable_sampler": False},
}


@contextlib.contextmanager
def remaking(loader_class):
    """Accelerate creates loaders again from their attributes, as torch's class; within this context, as
    `loader_class`.
    """
    accelerate.data_loader.DataLoader = loader_class
    try:
        yield
    finally:
        accelerate.data_loader.DataLoader = TorchLoader


def run(loader_class: Any, configuration: str, remake: Any = TorchLoader, stream: bool = False, **more) -> Any:
    """Returns losses and samples of two epochs, and the samples after skip_first_batches."""
    AcceleratorState._reset_state(True)
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**CONFIGURATIONS[configuration]))
    torch.manual_seed(5)
    arguments = {"batch_size": 8, **more}
    loader = loader_class(PointStream(), **arguments) if stream else loader_class(Points(), shuffle=True, **arguments)
    with remaking(remake):
        # Ranks with different numbers of batches would wait for each other's gradients for ever, so gradients are not
        # shared in that case.
        network = model() if configuration == "uneven" else accelerator.prepare(model())
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        optimizer, prepared = accelerator.prepare(optimizer, loader)
        assert type(prepared.base_dataloader) is remake
        losses, samples = [], []
        for epoch in range(2):
            prepared.set_epoch(epoch)
            for batch in prepared:
                optimizer.zero_grad()
                loss = loss_of(network, batch)
                accelerator.backward(loss)
                optimizer.step()
                losses.append(loss.item())
                samples.append(batch["index"].tolist())
        rest = skip_first_batches(prepared, 2)
        assert type(rest.base_dataloader) is remake
        skipped = [batch["index"].tolist() for batch in rest]
    return {"losses": losses, "samples": samples, "skipped": skipped, "lengths": [len(prepared)] if not stream else []}


def every_run() -> dict[str, Any]:
    runs = {}
    ours = LOADERS["feedline"]
    for configuration in CONFIGURATIONS:
        for workers in (0, 2) if configuration in ("usual", "dispatch_batches") else (0,):
            name = f"{configuration}, {workers} workers"
            options = worker_options(workers)
            runs[f"{name}: torch's"] = run(TorchLoader, configuration, **options)
            runs[f"{name}: ours"] = run(ours, configuration, **options)
            runs[f"{name}: ours, remade as ours"] = run(ours, configuration, ours, **options)
    for configuration in ("usual", "dispatch_batches"):
        name = f"stream, {configuration}"
        runs[f"{name}: torch's"] = run(TorchLoader, configuration, stream=True)
        runs[f"{name}: ours"] = run(ours, configuration, stream=True)
        runs[f"{name}: ours, remade as ours"] = run(ours, configuration, ours, stream=True)
    return runs


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(every_run()))
    leave_group()
