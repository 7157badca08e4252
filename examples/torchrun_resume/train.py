# SPDX-License-Identifier: Apache-2.0
"""Trains on every sample exactly once per epoch with any number of ranks: `torchrun train.py FOLDER --epochs N`.

Resumes from FOLDER/checkpoint.pt if it exists, with the current number of ranks. The ranks share batches of
GLOBAL_BATCH samples; each rank appends its samples to FOLDER/samples.<run>.<rank>.jsonl.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn  # imported before the process group exists, see main()
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

import feedline

ROWS, GLOBAL_BATCH = 998, 12  # 2 rows remain at the end: two of four ranks have one batch fewer


def rows() -> feedline.Dataset:
    """Returns rows with x: (8,) float32, and y: () float32, a noisy sum of x."""
    numbers = np.random.default_rng(0)
    x = numbers.random((ROWS, 8), dtype=np.float32)
    return feedline.arrays(x=x, y=x.sum(1) + numbers.normal(0, 0.1, ROWS).astype(np.float32))


def share_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Copies rank 0's momentum to all ranks: Join shares only the model, and some ranks made no last step."""
    state = [optimizer.state_dict()]
    dist.broadcast_object_list(state, src=0)  # rank 0 never has fewer batches than another rank
    optimizer.load_state_dict(state[0])


def save(path: Path, model: DistributedDataParallel, optimizer: torch.optim.Optimizer, loader: Any, run: int) -> None:
    """Writes the checkpoint atomically. `loader` is rank 0's loader state, which is the same on all ranks."""
    states = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader}
    torch.save({**states, "run": run}, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)


def train(folder: Path, epochs: int) -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = rows().loader(GLOBAL_BATCH // ranks, shuffle=True, seed=3, uneven="exact")
    checkpoint, run = folder / "checkpoint.pt", 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        run = saved["run"] + 1

    with loader, (folder / f"samples.{run}.{rank}.jsonl").open("w", buffering=1) as log:
        while loader.epoch < epochs:
            with Join([model]):  # a rank without a batch must still participate in averaging gradients
                for batch in loader:
                    state, here = loader.state_dict(), loader.rows_per_rank
                    print(json.dumps({"state": state, "samples": loader.last_samples, "pid": os.getpid()}), file=log)
                    loss = torch.nn.functional.mse_loss(model(batch.x).squeeze(1), batch.y)
                    optimizer.zero_grad()
                    # DDP averages over ranks; with this weight, the result is the average over the samples of all ranks
                    (loss * here[rank] * ranks / sum(here)).backward()
                    optimizer.step()
                    if rank == 0:
                        save(checkpoint, model, optimizer, state, run)
            share_optimizer(optimizer)
    if rank == 0:
        torch.save(model.module.state_dict(), folder / "model.pt")


def main() -> None:
    """Trains, and ends all gloo threads: a thread that frees a tensor while Python exits aborts the process.

    destroy_process_group() ends them only if nothing else references the group. The model does, until it is collected;
    torch.distributed.nn does permanently, as a default argument, if it is first imported while a group exists, as by
    DistributedDataParallel.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(options.folder, options.epochs)
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
