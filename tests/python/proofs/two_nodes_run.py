# SPDX-License-Identifier: Apache-2.0
"""A training run without a model over several nodes, made to lose one: `torchrun two_nodes_run.py FOLDER URL...`.

The ranks share batches of GLOBAL_BATCH photos out of the tars at the URLs, and meet after each. Each appends what it
was given to FOLDER/samples.<run>.<rank>.jsonl; rank 0 keeps the loader's state in FOLDER/state.json, from which the
next run goes on with as many ranks as it has.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import feedline

PHOTOS, GLOBAL_BATCH, EPOCHS, SEED = 96, 12, 20, 3
PATIENCE_S = 15  # timeout of ranks that wait for a rank on a lost node


def photos(urls: list[str]) -> feedline.Dataset:
    return feedline.open(urls).random_resized_crop(24).random_horizontal_flip()


def digests(batch: object) -> list[str]:
    """Returns a digest for each photo, of its augmented pixels and its label."""
    rows = zip(batch.image, batch.label, strict=True)  # type: ignore[attr-defined]
    return [hashlib.sha256(image.tobytes() + label.tobytes()).hexdigest()[:16] for image, label in rows]


def run(folder: Path, urls: list[str]) -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    state_path, number = folder / "state.json", 0
    loader = photos(urls).loader(GLOBAL_BATCH // ranks, shuffle=True, seed=SEED, output="numpy", num_workers=1)
    if state_path.exists():
        saved = json.loads(state_path.read_text())
        loader.load_state_dict(saved["state"])
        number = saved["run"] + 1
    dist.barrier()  # all ranks have read it
    with loader, (folder / f"samples.{number}.{rank}.jsonl").open("w", buffering=1) as log:
        while loader.epoch < EPOCHS:
            for batch in loader:
                state = loader.state_dict()
                line = {"state": state, "samples": loader.last_samples, "digests": digests(batch)}
                print(json.dumps(line), file=log)
                dist.all_reduce(torch.zeros(1))
                if rank == 0:
                    state_path.with_suffix(".part").write_text(json.dumps({"state": state, "run": number}))
                    state_path.with_suffix(".part").replace(state_path)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=PATIENCE_S))
    run(Path(sys.argv[1]), sys.argv[2:])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
