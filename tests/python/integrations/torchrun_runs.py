# SPDX-License-Identifier: Apache-2.0
"""The programs that test_torchrun.py starts under torchrun: `torchrun_runs.py JOB FOLDER`, on the CPU with gloo.

Every rank writes FOLDER/<rank>.jsonl while it runs, so that the samples of a killed rank are recorded.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn  # imported before the process group exists, otherwise it keeps the group's threads for good
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

import feedline

EPOCHS = 2
ROWS, GLOBAL_BATCH = 98, 12  # 2 rows remain, fewer than four ranks: two of them have one batch fewer


def points() -> feedline.Dataset:
    """x: (4,) float32, y: the row's own number."""
    x = np.random.default_rng(0).random((ROWS, 4), dtype=np.float32)
    return feedline.arrays(x=x, y=np.arange(ROWS))


def loader(world_size: int, **more: Any) -> feedline.Loader:
    """The rank comes from torchrun; it is not passed here."""
    return points().loader(GLOBAL_BATCH // world_size, shuffle=True, seed=8, num_workers=1, **more)


def agreed(value: Any) -> bool:
    """Returns whether all ranks have the same value."""
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return all(other == value for other in values)


def every_epoch(say: Any) -> None:
    """Epochs with each way of distributing a remainder."""
    for uneven in ("exact", "pad", "drop"):
        with loader(dist.get_world_size(), uneven=uneven) as ours:
            for epoch in range(EPOCHS):
                samples, states_agree = [], [agreed(ours.state_dict())]
                for step, _ in enumerate(ours, 1):
                    samples.append(ours.last_samples)
                    if step <= ROWS // GLOBAL_BATCH:  # all ranks have these samples
                        states_agree.append(agreed(ours.state_dict()))
                states_agree.append(agreed(ours.state_dict()))
                say(uneven=uneven, epoch=epoch, samples=samples, states_agree=states_agree)


def network() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Linear(4, 1)


def joined(say: Any) -> None:
    """The recipe in docs/reproducibility.md: ranks with different numbers of batches, and the gradient of every
    sample.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    steps = 0
    with loader(world_size, uneven="exact") as ours:
        for _ in range(EPOCHS):
            with Join([model]):
                for batch in ours:
                    rows = ours.rows_per_rank
                    loss = torch.nn.functional.mse_loss(model(batch.x), batch.x.sum(1, keepdim=True))
                    optimizer.zero_grad()
                    (loss * rows[rank] * world_size / sum(rows)).backward()
                    optimizer.step()
                    steps += 1
            state = [optimizer.state_dict()]
            dist.broadcast_object_list(state, src=0)
            optimizer.load_state_dict(state[0])
    say(steps=steps, weights=[p.detach().flatten().tolist() for p in model.module.parameters()])


def until_killed(say: Any) -> None:
    """Runs steps until a rank is killed; rank 0 stores the last state in FOLDER/state.json, like a checkpoint."""
    path = Path(sys.argv[2]) / "state.json"
    with loader(dist.get_world_size(), uneven="exact") as ours:
        while True:
            for step, _ in enumerate(ours, 1):
                state = ours.state_dict()
                say(epoch=ours.epoch, step=step, samples=ours.last_samples, state=state, pid=os.getpid())
                if not all(ours.rows_per_rank):
                    continue  # a last batch that other ranks do not have
                dist.barrier()  # simulates averaging gradients
                if dist.get_rank() == 0 and step % 3 == 0:
                    path.with_suffix(".part").write_text(json.dumps(state))
                    path.with_suffix(".part").replace(path)
                time.sleep(0.002)


def rest(say: Any) -> None:
    """Continues from FOLDER/state.json to the end of that epoch."""
    with loader(dist.get_world_size(), uneven="exact") as ours:
        ours.load_state_dict(json.loads((Path(sys.argv[2]) / "state.json").read_text()))
        for _ in ours:
            say(samples=ours.last_samples)


JOBS = {"every_epoch": every_epoch, "joined": joined, "until_killed": until_killed, "rest": rest}


def main() -> int:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    with (Path(sys.argv[2]) / f"{dist.get_rank()}.jsonl").open("w", buffering=1) as log:
        for job in sys.argv[1].split(","):
            JOBS[job](lambda job=job, **what: print(json.dumps({"job": job, **what}), file=log))
    gc.collect()  # a model would keep the group's threads alive, and they can abort a process that exits
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
