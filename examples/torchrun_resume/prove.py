# SPDX-License-Identifier: Apache-2.0
"""Kills a rank of a torchrun run, resumes with fewer ranks, and proves that no sample was lost or seen twice.

    python examples/torchrun_resume/prove.py            # about half a minute

Four ranks train; at a random moment, one of them receives SIGKILL, and torchrun ends the others. Two ranks resume from
the checkpoint. An uninterrupted run must have the same samples in each step and the same final model, except for the
order in which floats are summed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import train

_HERE = Path(__file__).resolve().parent
_PATIENCE_S = 300


def torchrun(folder: Path, ranks: int, epochs: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    command += [str(_HERE / "train.py"), str(folder), "--epochs", str(epochs)]
    with (folder / "torchrun.log").open("a") as log:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)


def finish(run: subprocess.Popen[bytes], folder: Path) -> None:
    if run.wait(_PATIENCE_S) != 0:
        raise RuntimeError(f"torchrun failed: {(folder / 'torchrun.log').read_text()[-6000:]}")


def lines(folder: Path, run: int, ranks: int) -> list[list[dict[str, Any]]]:
    """Returns the lines that each rank of a run logged, without a line that the kill truncated."""
    texts = [(folder / f"samples.{run}.{rank}.jsonl").read_text() for rank in range(ranks)]
    return [[json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()] for text in texts]


def kill_a_rank(run: subprocess.Popen[bytes], folder: Path, epochs: int, moment: random.Random) -> int:
    """Sends SIGKILL to a random rank as soon as it reaches a random step in the first half."""
    rank = moment.randrange(4)
    step = moment.randrange(1, epochs * train.ROWS // train.GLOBAL_BATCH // 2)
    log, deadline = folder / f"samples.0.{rank}.jsonl", time.monotonic() + _PATIENCE_S
    while not log.exists() or log.read_bytes().count(b"\n") < step:
        if run.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"torchrun did not start: {(folder / 'torchrun.log').read_text()[-6000:]}")
        time.sleep(0.001)
    os.kill(json.loads(log.read_text().splitlines()[0])["pid"], signal.SIGKILL)
    run.wait(_PATIENCE_S)
    return rank


Place = tuple[int, int]  # epoch, and position in the epoch after the batch


def steps_of(ranks: list[list[dict[str, Any]]]) -> dict[Place, list[int]]:
    """Returns the sample indices of every global batch, sorted."""
    together: dict[Place, list[int]] = {}
    for line in (line for rank in ranks for line in rank):
        place = (line["state"]["epoch"], line["state"]["position"])
        together[place] = sorted(together.get(place, []) + line["samples"])
    return together


def undisturbed(epochs: int) -> dict[Place, list[int]]:
    """Returns the plan, read by one process without a model."""
    steps: dict[Place, list[int]] = {}
    with train.rows().loader(train.GLOBAL_BATCH, shuffle=True, seed=3, rank=0, world_size=1) as loader:
        for epoch in range(epochs):
            position = 0
            for batch in loader:
                position += len(batch.y)
                steps[epoch, position] = sorted(loader.last_samples)
    return steps


def disturbed(folder: Path, epochs: int, moment: random.Random) -> dict[Place, list[int]]:
    """Returns the samples of every step of a run on four ranks that is killed and resumes with two."""
    rank = kill_a_rank(torchrun(folder, 4, epochs), folder, epochs, moment)
    before = steps_of(lines(folder, 0, 4))
    print(f"rank {rank} of 4 killed in step {len(before)}; torchrun ended the others")
    finish(torchrun(folder, 2, epochs), folder)
    after = steps_of(lines(folder, 1, 2))
    again = before.keys() & after.keys()
    print(f"2 ranks resumed from the checkpoint: {len(after)} steps, {len(again)} of them repeated")
    for place in again:
        if not set(before[place]) <= set(after[place]):
            raise AssertionError(f"epoch, position {place}: the repeated step had other samples")
    return before | after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, help="seed of the rank and the moment; default: random")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        killed, whole = Path(scratch, "killed"), Path(scratch, "whole")
        killed.mkdir()
        whole.mkdir()
        steps = disturbed(killed, options.epochs, random.Random(options.seed))
        expected = undisturbed(options.epochs)
        if steps != expected:
            missing, extra = len(expected.keys() - steps.keys()), len(steps.keys() - expected.keys())
            raise AssertionError(
                f"samples differ from the plan: {missing} steps missing, {extra} additional, or other samples"
            )
        digest = hashlib.sha256(repr(sorted(steps.items())).encode()).hexdigest()[:16]
        print(
            f"all {len(steps)} steps of {options.epochs} epochs have the plan's samples, each once per epoch ({digest})"
        )
        finish(torchrun(whole, 4, options.epochs), whole)
        models = [torch.load(folder / "model.pt")["weight"] for folder in (killed, whole)]
        apart = (models[0] - models[1]).abs().max().item()
        print(f"the model's weights differ from those of an uninterrupted run by at most {apart:.1e}")
        if apart > 1e-5:
            raise AssertionError("this is more than the order of sums explains")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
