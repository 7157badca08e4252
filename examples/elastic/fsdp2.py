# SPDX-License-Identifier: Apache-2.0
"""Trains with FSDP2, and resumes on any number of ranks: `torchrun --nproc_per_node=4 fsdp2.py FOLDER --steps 20`.

Saves a distributed checkpoint (torch.distributed.checkpoint) after the last step, and resumes from it if it exists.
Each rank appends its samples to FOLDER/samples.RANK.jsonl.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import feedline

ROWS, GLOBAL_BATCH = 240, 12


def rows() -> feedline.Dataset:
    """Returns rows with x: (8,) float32, and y: () float32."""
    x = np.random.default_rng(0).random((ROWS, 8), dtype=np.float32)
    return feedline.arrays(x=x, y=x.sum(1))


class Training:
    """All that a checkpoint contains, in the form that torch.distributed.checkpoint requires."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, loader: feedline.Loader) -> None:
        self.model, self.optimizer, self.loader = model, optimizer, loader

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        # one text: dcp would divide a dict into its values, and load only those that the new loader's state has, too
        return {"model": model, "optimizer": optimizer, "loader": json.dumps(self.loader.state_dict())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.loader.load_state_dict(json.loads(state["loader"]))


def train(folder: Path, steps: int) -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp_shard",))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = rows().loader(GLOBAL_BATCH // mesh.size(), shuffle=True, seed=3, drop_last=True, mesh=mesh, epochs=100)
    training, checkpoint = Training(model, optimizer, loader), folder / "checkpoint"
    if checkpoint.exists():
        dcp.load({"training": training}, checkpoint_id=checkpoint)
    with loader, (folder / f"samples.{dist.get_rank()}.jsonl").open("a") as log:
        for _, batch in zip(range(steps), loader, strict=False):
            loss = nn.functional.mse_loss(model(batch.x).squeeze(1), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(json.dumps({"epoch": loader.epoch, "samples": loader.last_samples}), file=log)
        dcp.save({"training": training}, checkpoint_id=checkpoint)
    whole = {name: value.full_tensor() for name, value in model.state_dict().items()}
    if dist.get_rank() == 0:
        torch.save(whole, folder / "model.pt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(options.folder, options.steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
