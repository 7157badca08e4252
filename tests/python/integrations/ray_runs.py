# SPDX-License-Identifier: Apache-2.0
"""The program of test_ray.py: Ray Train with two workers on the CPU; one of them dies once in the middle of the epoch.

`ray_runs.py FOLDER SCRATCH`. Each worker appends to FOLDER/<rank>.jsonl; SCRATCH contains Ray's sockets, whose paths
must be short.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import ray
import ray.train
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

import feedline

ROWS, BATCH, DIES_AT = 53, 3, 5


def rows() -> feedline.Dataset:
    return feedline.arrays(y=np.arange(ROWS))


def train(config: dict[str, Any]) -> None:
    context = ray.train.get_context()
    folder, rank = Path(config["folder"]), context.get_world_rank()
    with rows().loader(BATCH, shuffle=True, seed=6, uneven="exact") as loader:  # the rank comes from torch.distributed
        restored = ray.train.get_checkpoint()
        if restored is not None:
            with restored.as_directory() as path:
                loader.load_state_dict(json.loads((Path(path) / "loader.json").read_text()))
        for _ in loader:
            state = loader.state_dict()
            line = {"samples": loader.last_samples, "state": state, "resumed": restored is not None}
            with (folder / f"{rank}.jsonl").open("a") as log:
                log.write(json.dumps(line) + "\n")
            with tempfile.TemporaryDirectory() as path:
                (Path(path) / "loader.json").write_text(json.dumps(state))
                saved = Checkpoint.from_directory(path) if rank == 0 else None  # the state is the same on every rank
                ray.train.report({}, checkpoint=saved)
            died = folder / "died"
            steps = len((folder / f"{rank}.jsonl").read_text().splitlines())
            if rank == 1 and steps == DIES_AT and not died.exists():
                died.touch()
                os._exit(1)


def main() -> int:
    folder, scratch = sys.argv[1:]
    ray.init(num_cpus=2, include_dashboard=False, _temp_dir=scratch, object_store_memory=80 * 2**20)
    TorchTrainer(
        train,
        train_loop_config={"folder": folder},
        scaling_config=ScalingConfig(num_workers=2, use_gpu=False),
        run_config=RunConfig(storage_path=f"{folder}/storage", failure_config=FailureConfig(max_failures=1)),
    ).fit()
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
