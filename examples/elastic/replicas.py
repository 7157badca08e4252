# SPDX-License-Identifier: Apache-2.0
"""Trains in replicas that die and join within a run: `python replicas.py FOLDER`.

Three replicas train; one is killed within a step, and a fourth joins later. The others do not restart: they repeat the
step, and `loader.reshard` gives them their new share. FOLDER/samples.jsonl has the samples of every step that all
replicas committed: each sample once an epoch.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import torch

import feedline

ROWS, BATCH, EPOCHS = 200, 4, 2
DIES_AT, JOINS_AT = 5, 9  # steps


def rows() -> feedline.Dataset:
    """Returns rows with x: (8,) float32, and y: () float32."""
    x = np.random.default_rng(0).random((ROWS, 8), dtype=np.float32)
    return feedline.arrays(x=x, y=x.sum(1))


# ---- a replica


def train(manager: Manager, dies: bool) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = rows().loader(BATCH, shuffle=True, seed=3, uneven="exact", rank=0, world_size=1)
    committed = loader.state_dict()  # after the last step that all replicas completed
    share, ended = (0, 1), False

    def state_dict() -> dict[str, Any]:
        return {"model": model.state_dict(), "loader": committed}

    def load_state_dict(state: dict[str, Any]) -> None:  # of another replica, when this one joins
        nonlocal committed
        model.load_state_dict(state["model"])
        committed = state["loader"]

    manager.use(state_dict, load_state_dict)
    batches = iter(loader)
    while True:
        manager.start_quorum()
        now = manager.participating_rank(), manager.num_participants()
        if now != share or manager.must_repeat:
            loader.reshard(*now, state=committed)  # `batches` continues there
            share = now
            if ended:
                batches = iter(loader)
        batch = next(batches, None)
        ended = batch is None
        samples = [] if batch is None else loader.last_samples
        optimizer.zero_grad()
        if batch is not None:
            loss = torch.nn.functional.mse_loss(model(batch.x).squeeze(1), batch.y, reduction="sum")
            loss.backward()
        if dies and manager.current_step() == DIES_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        summed = manager.allreduce([*gradients, torch.tensor(float(len(samples)))])
        if not manager.should_commit(loader.epoch, samples):
            continue
        *gradients, count = summed
        if count == 0:  # no replica has a batch: the epoch has ended
            if loader.epoch >= EPOCHS:
                return
            batches, committed = iter(loader), loader.state_dict()
            continue
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient / count
        optimizer.step()
        committed = loader.state_dict()


# ---- a stand-in for torchft


class Manager:
    """The methods of torchft's Manager that a loop uses, over a pipe to :func:`serve`."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._step = self._rank = 0
        self._count = 1
        self._failed = self.must_repeat = False

    def use(self, state_dict: Callable[[], Any], load_state_dict: Callable[[Any], None]) -> None:
        self._state_dict, self._load_state_dict = state_dict, load_state_dict

    def start_quorum(self) -> None:
        """Waits for all replicas. Replicas that join take over the state of another one."""
        self.must_repeat = self._failed
        self._pipe.send(self._state_dict())
        self._step, self._rank, self._count, state = self._pipe.recv()
        if state is not None:
            self._load_state_dict(state)
            self.must_repeat = True

    def participating_rank(self) -> int:
        return self._rank

    def num_participants(self) -> int:
        return self._count

    def current_step(self) -> int:
        return self._step

    def allreduce(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Returns the sums over all replicas; anything, if one of them died."""
        self._pipe.send([tensor.numpy() for tensor in tensors])
        return [torch.from_numpy(np.asarray(array)) for array in self._pipe.recv()]

    def should_commit(self, epoch: int, samples: list[int]) -> bool:
        """Returns whether all replicas completed the step."""
        self._pipe.send((epoch, samples))
        self._failed = not self._pipe.recv()
        return not self._failed


def serve(folder: Path, start: Callable[[bool], Connection]) -> None:
    """Coordinates the replicas, and starts one that joins."""
    pipes, step, joined = [start(False), start(False), start(True)], 0, False
    new = set(pipes)
    with (folder / "samples.jsonl").open("w") as log:
        while pipes:
            if step == JOINS_AT and not joined:
                joined = True
                pipes.append(start(False))
                new.add(pipes[-1])
            states = gather(pipes)
            pipes = list(states)
            if not pipes:
                return
            healthy = next((states[pipe] for pipe in pipes if pipe not in new), None)
            for rank, pipe in enumerate(pipes):
                pipe.send((step, rank, len(pipes), healthy if pipe in new else None))
            new.clear()
            parts = gather(pipes)
            sums = [sum(arrays[1:], start=arrays[0]) for arrays in zip(*parts.values(), strict=True)]
            for pipe in parts:
                pipe.send(sums)
            done = gather(list(parts))
            is_complete = len(done) == len(pipes)
            for pipe in done:
                pipe.send(is_complete)
            pipes = list(done)
            if is_complete:
                step += 1
                samples = sorted(index for _, indices in done.values() for index in indices)
                print(json.dumps({"replicas": len(done), "samples": samples}), file=log)


def gather(pipes: list[Connection]) -> dict[Connection, Any]:
    """Returns a message of each replica that lives."""
    found: dict[Connection, Any] = {}
    waiting = set(pipes)
    while waiting:
        for pipe in wait(waiting):
            assert isinstance(pipe, Connection)
            waiting.discard(pipe)
            try:
                found[pipe] = pipe.recv()
            except (EOFError, OSError):
                pipe.close()
    return {pipe: found[pipe] for pipe in pipes if pipe in found}


def replica(pipe: Connection, dies: bool) -> None:
    train(Manager(pipe), dies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    context = multiprocessing.get_context("spawn")

    def start(dies: bool) -> Connection:
        ours, theirs = context.Pipe()
        context.Process(target=replica, args=(theirs, dies), daemon=True).start()
        theirs.close()
        return ours

    serve(folder, start)
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    counts = np.bincount([index for line in lines for index in line["samples"]], minlength=ROWS)
    print(f"{len(lines)} steps with {sorted({line['replicas'] for line in lines})} replicas")
    print(f"each sample was committed {sorted(set(counts.tolist()))} times in {EPOCHS} epochs")


if __name__ == "__main__":
    main()
