# SPDX-License-Identifier: Apache-2.0
"""Four gloo processes, forked from one that has imported torch: `parallel_ranks.py FOLDER PAGE`.

Each runs the page's Python, section by section, on the CPU, and writes FOLDER/RANK.json.
"""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import feedline

WORLD, ROWS = 4, 48


def train() -> feedline.Dataset:
    return feedline.arrays(x=np.arange(ROWS))


def rows(loader: Any) -> list[int]:
    return [int(x) for batch in loader for x in (batch.x if hasattr(batch, "x") else batch[0])]


def error_of(call: Any) -> str:
    try:
        call()
    except feedline.ConfigError as error:
        return str(error)
    return ""


def refused(shape: tuple[int, ...], names: tuple[str, ...] | None) -> dict[str, str]:
    """Errors of a loader and a sampler if this process has such a mesh and none is passed."""
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    loader = train().loader(2)
    found = {
        "iter": error_of(lambda: iter(loader)),
        "len": error_of(lambda: len(loader)),
        "sampler": error_of(lambda: feedline.DistributedSampler(range(9))),
        "buckets": error_of(lambda: len(feedline.BucketBatchSampler([1, 2, 3], 1))),
        "given": error_of(lambda: iter(train().loader(2, rank=0, world_size=1))),
    }
    assert mesh.ndim == len(shape)
    return found


def meshes(state: dict[str, Any]) -> dict[str, Any]:
    """A resumed loader's rows, other ways to name dimensions, and errors for wrong ones."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    found: dict[str, Any] = {}
    other = train().loader(2, shuffle=True, seed=1, mesh=mesh)
    other.load_state_dict(state)
    found["resumed"] = rows(other)
    cube = init_device_mesh("cpu", (1, 2, 2), mesh_dim_names=("a", "b", "tp"))
    found["wrong"] = {
        "unclear": error_of(lambda: train().loader(2, mesh=cube)),
        "unknown": error_of(lambda: train().loader(2, mesh=mesh, dp="dpp")),
        "twice": error_of(lambda: train().loader(2, mesh=mesh, dp=("dp", "dp"))),
        "number": error_of(lambda: train().loader(2, mesh=mesh, dp=2)),
        "rank": error_of(lambda: train().loader(2, mesh=mesh, rank=0, world_size=2)),
        "no mesh": error_of(lambda: train().loader(2, mesh=3)),
        "dp alone": error_of(lambda: train().loader(2, dp="dp")),
    }
    found["numbered"] = rows(train().loader(2, mesh=cube, dp=(1,)))
    mesh["dp"]._flatten("rows")
    found["flattened"] = rows(train().loader(2, mesh=mesh, dp="rows"))
    return found


def run(rank: int, folder: Path, page: str) -> None:
    plain = train().loader(2)
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=WORLD)
    found: dict[str, Any] = {"plain": rows(plain)}
    for title, block in re.findall(r"^### (.+?)\n.*?^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        names: dict[str, Any] = {"feedline": feedline, "train": train()}
        if title == "The drop-in":
            names["train"] = list(range(ROWS))
        exec(block.replace('"cuda"', '"cpu"'), names)
        loader = names["loader"]
        if title == "The drop-in":
            found[title] = [int(x) for batch in loader for x in batch]
            continue
        begun = iter(loader)
        first = [int(x) for _ in range(3) for x in next(begun).x]
        state = loader.state_dict()
        found[title] = first + rows(begun)
        found[f"{title}, state"] = state
    del loader, names, begun
    found |= meshes(found["FSDP2, state"])
    gc.collect()
    found["afterwards"] = rows(train().loader(2))
    cases = {"tp": ((2, 2), ("dp", "tp")), "only tp": ((4,), ("tp",)), "flat": ((1, 4), ("dp", "tp"))}
    cases |= {"unnamed": ((2, 2), None), "hsdp": ((2, 2), ("dp_replicate", "dp_shard")), "dp": ((4, 1), ("dp", "tp"))}
    for name, (shape, dims) in cases.items():
        found[f"refused {name}"] = refused(shape, dims)
        gc.collect()
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def main() -> int:
    """Exits with 1 as soon as a rank fails, since the others would wait for it."""
    folder, page = Path(sys.argv[1]), Path(sys.argv[2]).read_text()
    gc.freeze()  # the ranks would traverse everything that was imported
    ranks = set()
    for rank in range(WORLD):
        process = os.fork()
        if process == 0:
            run(rank, folder, page)
            return 0
        ranks.add(process)
    while ranks:
        process, status = os.wait()
        ranks.remove(process)
        if status != 0:
            for other in ranks:
                os.kill(other, signal.SIGKILL)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
