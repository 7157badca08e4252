# SPDX-License-Identifier: Apache-2.0
"""Megatron-Energon's own loaders and Feedline's: prints the delivered samples as JSON.

Run by the Python that has the package: ``energon_runs.py energon FOLDER``.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import megatron.energon as energon
import torch
import webdataset
from megatron.energon.flavors.webdataset import BaseWebdatasetFactory

import feedline
from feedline.integrations import energon as ours

SAMPLES, BATCH, BATCHES = 61, 4, 7
logging.disable(logging.WARNING)
warnings.filterwarnings("ignore", message=".*pin_memory")  # a module that Energon requires, with or without a GPU


def write(folder: Path) -> None:
    """Tars written by webdataset, with the files that `energon prepare` writes next to them."""
    folder.mkdir()
    with webdataset.ShardWriter(f"{folder}/%03d.tar", maxcount=10, verbose=0) as writer:
        for i in range(SAMPLES):
            writer.write({"__key__": f"{i:04}", "txt": str(i)})
    shards = sorted(path.name for path in folder.glob("*.tar"))
    BaseWebdatasetFactory.prepare_dataset(folder, shards, split_parts_ratio=[("train", 1.0)], workers=1)
    (folder / ".nv-meta" / "dataset.yaml").write_text(
        "sample_type: {__module__: megatron.energon, __class__: TextSample}\nfield_map: {text: txt}\n"
    )


class Run:
    """Loaders with a given number of workers: Energon's own, or those created by `install()`."""

    def __init__(self, folder: Path, workers: int, is_ours: bool) -> None:
        self._folder, self._workers, self._is_ours = folder, workers, is_ours

    def loader(self, make: Any = energon.get_savable_loader) -> Any:
        gc.collect()
        torch.manual_seed(1)
        dataset = energon.get_train_dataset(
            self._folder,
            worker_config=energon.WorkerConfig(rank=0, world_size=1, num_workers=self._workers),
            batch_size=BATCH,
            shuffle_buffer_size=7,
            max_samples_per_sequence=5,
            virtual_epoch_length=BATCHES,
        )
        with ours.install() if self._is_ours else contextlib.nullcontext():
            loader = make(dataset)
        assert isinstance(loader, feedline.DataLoader) is self._is_ours
        return loader

    def epochs(self, loader: Any, count: int) -> list[list[list[int]]]:
        return [[ids(batch) for batch in loader] for _ in range(count)]

    def taken(self, epoch: int, batches: int) -> tuple[Any, dict[str, Any]]:
        """A state after this many batches of an epoch, and the samples before and after it."""
        loader = self.loader()
        before = self.epochs(loader, epoch)
        epoch_left = iter(loader)
        before.append([ids(next(epoch_left)) for _ in range(batches)])
        state = pickle.dumps(loader.state_dict() if self._is_ours else loader.save_state_rank())
        rest = [ids(batch) for batch in epoch_left] if batches else []
        return state, {"before": before, "going_on": [rest, *self.epochs(loader, 1)]}

    def loaded(self, state: bytes) -> list[list[list[int]]]:
        """Two epochs after a state of either kind of loader."""
        loader, found = self.loader(), pickle.loads(state)
        if self._is_ours and isinstance(found, dict):
            loader.load_state_dict(found)
        else:
            loader.restore_state_rank(found["energon"] if isinstance(found, dict) else found)
        return self.epochs(loader, 2)


def ids(batch: Any) -> list[int]:
    return [int(text) for text in batch.text]


def runs(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for workers in (0, 2):
        entry = found[str(workers)] = {}
        both = {"own": Run(folder, workers, False), "feedline": Run(folder, workers, True)}
        states = {}
        for name, run in both.items():
            entry[name] = {"epochs": run.epochs(run.loader(), 3)}
            entry[name]["basic"] = run.epochs(run.loader(energon.get_loader), 2)
            states[name], entry[name]["taken"] = run.taken(epoch=1, batches=3)
        for name, run in both.items():
            entry[name]["loaded"] = {of: run.loaded(state) for of, state in states.items()}
    return found


if __name__ == "__main__":
    write(Path(sys.argv[2]))
    print(json.dumps(runs(Path(sys.argv[2]))))
