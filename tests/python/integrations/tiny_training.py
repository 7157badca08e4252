# SPDX-License-Identifier: Apache-2.0
"""A model, data and a run with two processes, small enough for a test."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed.nn  # imported before the process group exists, otherwise it keeps the group's threads for good
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset, IterableDataset

import feedline

LOADERS = {"torch": TorchLoader, "feedline": feedline.DataLoader}
HANG_S = 300


class Points(Dataset):
    """50 points, which no batch size and number of ranks used here divides."""

    def __init__(self, count: int = 50) -> None:
        generator = torch.Generator().manual_seed(0)
        self.x = torch.rand(count, 4, generator=generator)
        self.y = self.x.sum(1, keepdim=True)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "y": self.y[index], "index": index}


class PointStream(IterableDataset):
    def __iter__(self):
        points = Points()
        return (points[i] for i in range(len(points)))


def model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def loss_of(model: torch.nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    return torch.nn.functional.mse_loss(model(batch["x"]), batch["y"])


# Read before anything runs, because Lightning removes the variable from the environment after fitting a model.
_RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def worker_options(workers: int) -> dict[str, Any]:
    """Options of a loader with this many workers, on one rank or on one of two.

    fork() is not used while gloo's threads run: while one of them enters Python, it holds the lock of the list of
    thread states, and a child of CPython 3.11, in which no thread releases its copy of this lock, waits for it before
    running any code.
    """
    if workers and _RANKS > 1:
        multiprocessing.set_forkserver_preload([Path(sys.argv[0]).stem])  # imports once for all workers
        return {"num_workers": workers, "multiprocessing_context": "forkserver"}
    return {"num_workers": workers}


def leave_group() -> None:
    """Ends gloo's threads, because they can abort a rank that exits while one of them still frees a tensor."""
    gc.collect()  # other references to the group
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    threads = [name.read_text().strip() for name in Path("/proc/self/task").glob("*/comm")]
    assert not [name for name in threads if "gloo" in name], threads


def run_two_ranks(script: Path, folder: Path) -> list[Any]:
    """Returns what each rank of `script` wrote to its path, as JSON."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = [str(Path(feedline.__file__).parents[1]), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "NODE_RANK": "0",
        "OMP_NUM_THREADS": "1",
    }
    ranks = []
    for rank in range(2):
        log = (folder / f"{rank}.log").open("w")
        own = {**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        command = [sys.executable, "-W", "ignore", str(script), str(folder / f"{rank}.json")]
        ranks.append(subprocess.Popen(command, env=own, stdout=log, stderr=subprocess.STDOUT))
    try:
        for rank, process in enumerate(ranks):
            status = process.wait(HANG_S)
            assert status == 0, f"rank {rank}:\n{(folder / f'{rank}.log').read_text()[-3000:]}"
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
