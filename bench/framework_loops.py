# SPDX-License-Identifier: Apache-2.0
"""Runs one framework's training loop over one kind of data, alternating between torch's loader and Feedline's.

Prints samples per second of both for each round, as one line of JSON. Started by `frameworks.py`. The model is so small
that the loop waits for data; the rate is measured between two forward passes, in the epochs after the first.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset

import feedline

EPOCHS = 3
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Features(Dataset):
    """A dataset in Python: a sample is 32 numbers, computed with some work, and a class."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        values = np.sin(np.arange(32, dtype=np.float32) * index)
        return torch.from_numpy(values), index % 10


class Model(nn.Module):
    """Uses every 32nd pixel. Records when each forward pass begins."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(32, 10)
        self.begun_s: list[float] = []

    def forward(
        self, pixel_values: torch.Tensor, labels: torch.Tensor | None = None
    ) -> torch.Tensor | dict[str, torch.Tensor]:
        self.begun_s.append(time.perf_counter())
        logits = self.head(pixel_values.flatten(1)[:, :: max(1, pixel_values[0].numel() // 32)][:, :32])
        if labels is None:
            return logits
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def photos(folder: str) -> Any:
    from torchvision import datasets, transforms

    steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    return datasets.ImageFolder(folder, transforms.Compose([*steps, transforms.Normalize(MEAN, STD)]))


def timm_photos(folder: str) -> Any:
    from timm.data import ImageDataset, create_transform

    transform = create_transform(224, is_training=True, auto_augment=None, mean=MEAN, std=STD, use_prefetcher=False)
    return ImageDataset(folder, transform=transform)


# -- loops: each trains `model` for EPOCHS epochs, with a loader of the given class


def plain(loader_class: Any, dataset: Any, model: Model, options: dict[str, Any]) -> None:
    loader = loader_class(dataset, shuffle=True, **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()


def accelerate(loader_class: Any, dataset: Any, model: Model, options: dict[str, Any]) -> None:
    import accelerate

    from feedline.integrations import accelerate as ours

    with ours.install() if loader_class is feedline.DataLoader else contextlib.nullcontext():
        accelerator = accelerate.Accelerator(cpu=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loader = loader_class(dataset, shuffle=True, **options)
        prepared, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for _ in range(EPOCHS):
            for inputs, labels in loader:
                optimizer.zero_grad()
                accelerator.backward(nn.functional.cross_entropy(prepared(inputs), labels))
                optimizer.step()


def lightning(loader_class: Any, dataset: Any, model: Model, options: dict[str, Any]) -> None:
    import lightning

    class Trained(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=EPOCHS,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Trained(), loader_class(dataset, shuffle=True, **options))


def transformers(loader_class: Any, dataset: Any, model: Model, options: dict[str, Any]) -> None:
    import transformers

    from feedline.integrations import transformers as ours

    def collate(samples: list[Any]) -> dict[str, torch.Tensor]:
        return {
            "pixel_values": torch.stack([sample[0] for sample in samples]),
            "labels": torch.tensor([sample[1] for sample in samples]),
        }

    with (
        ours.install() if loader_class is feedline.DataLoader else contextlib.nullcontext(),
        tempfile.TemporaryDirectory() as folder,
    ):
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=options["batch_size"],
            dataloader_num_workers=options["num_workers"],
            dataloader_persistent_workers=True,
            remove_unused_columns=False,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        transformers.Trainer(model, arguments, train_dataset=dataset, data_collator=collate).train()


LOOPS: dict[str, Callable[[Any, Any, Model, dict[str, Any]], None]] = {
    "torch": plain,
    "accelerate": accelerate,
    "lightning": lightning,
    "transformers": transformers,
    "timm": plain,
}


def rate(loop: str, loader_class: Any, dataset: Any, batch_size: int, workers: int) -> float:
    torch.manual_seed(0)
    model = Model()
    options = {"batch_size": batch_size, "num_workers": workers, "persistent_workers": True, "drop_last": True}
    LOOPS[loop](loader_class, dataset, model, options)
    batches = len(model.begun_s) // EPOCHS
    seconds = model.begun_s[-1] - model.begun_s[batches - 1]
    return (EPOCHS - 1) * batches * batch_size / seconds


def turns(count: int) -> Iterator[tuple[str, Any]]:
    """Measures both loaders; their order alternates."""
    kinds = [("stock", TorchLoader), ("feedline", feedline.DataLoader)]
    for turn in range(count):
        yield from reversed(kinds) if turn % 2 else kinds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loop", choices=LOOPS)
    parser.add_argument("data", choices=["photos", "python"])
    parser.add_argument("--photos", help="class folders of JPEG files")
    parser.add_argument("--samples", type=int, default=6_000, help="samples of the Python dataset")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.data == "python":
        dataset: Any = Features(options.samples)
    else:
        dataset = (timm_photos if options.loop == "timm" else photos)(options.photos)
    found: dict[str, list[float]] = {"stock": [], "feedline": []}
    for kind, loader_class in turns(options.rounds):
        found[kind].append(rate(options.loop, loader_class, dataset, 32, options.workers))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
