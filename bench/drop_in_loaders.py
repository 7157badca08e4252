# SPDX-License-Identifier: Apache-2.0
"""Runs one case with one loader in this process and prints its figures as lines of JSON. `measure.py` starts it.

Prints a line at the beginning and at the end of the part in which memory is sampled, then the figures. Spawned workers
import this file, so it imports Feedline only in the functions that use it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import drop_in_sets as sets


@dataclass(frozen=True)
class Case:
    """A dataset, the arguments of both loaders, and the part that is timed."""

    dataset: Callable[[argparse.Namespace], Any]
    run: Callable[[Any, argparse.Namespace], dict[str, Any]]
    arguments: dict[str, Any] = field(default_factory=dict)


def samples_per_s(loader: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Epoch 0 is the warm-up, and the epoch in which memory is measured."""
    for _ in loader:
        time.sleep(options.step_s)
    _end_of_sampling()
    started = time.perf_counter()
    for _ in range(options.epochs):
        for _ in loader:
            pass
    return {"samples_per_s": options.epochs * len(loader.dataset) / (time.perf_counter() - started)}


def first_batch(loader: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Measures the time from iter(), which starts the workers, in a separate epoch before memory is sampled.
    `start_cpu_s` is the CPU time of this process and the workers until each worker has returned a batch; on a busy
    machine, it is more reliable.
    """
    import processes

    own_before = processes.cpu_s([os.getpid()])
    started = time.perf_counter()
    batches = iter(loader)
    next(batches)
    seconds = time.perf_counter() - started
    for _ in range(options.workers - 1):
        next(batches)
    start_cpu_s = processes.cpu_s(processes.tree(os.getpid())) - own_before
    del batches
    _start_of_sampling()
    for _ in loader:
        pass
    _end_of_sampling()
    return {"first_batch_s": seconds, "start_cpu_s": start_cpu_s}


def epoch_gap(loader: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the median time from the end of an epoch's last training step to the first batch of the next epoch."""
    gaps, last = [], None
    for _ in range(options.epochs + 1):
        for batch in loader:
            if last is not None:
                gaps.append(time.perf_counter() - last)
                last = None
            time.sleep(options.step_s)
            del batch
        last = time.perf_counter()
    _end_of_sampling()
    return {"gap_s": statistics.median(gaps)}


CASES = {
    "photos": Case(
        lambda options: sets.photos(options.photos),
        samples_per_s,
        {"batch_size": 64, "shuffle": True, "persistent_workers": True},
    ),
    "own_photos": Case(
        lambda options: sets.own_photos(options.photos),
        samples_per_s,
        {"batch_size": 64, "shuffle": True, "persistent_workers": True},
    ),
    "table": Case(
        lambda options: sets.table(200_000), samples_per_s, {"batch_size": 256, "shuffle": True, "num_workers": 0}
    ),
    "large": Case(
        lambda options: sets.LargeTensors(384), samples_per_s, {"batch_size": 16, "persistent_workers": True}
    ),
    "scalars": Case(
        lambda options: sets.Scalars(20_000), samples_per_s, {"batch_size": 64, "persistent_workers": True}
    ),
    "paths_fork": Case(
        lambda options: sets.Paths(1_000_000),
        first_batch,
        {"sampler": range(25_600), "batch_size": 64, "multiprocessing_context": "fork"},
    ),
    "paths_spawn": Case(
        lambda options: sets.Paths(1_000_000),
        first_batch,
        {"sampler": range(25_600), "batch_size": 64, "multiprocessing_context": "spawn"},
    ),
    "gap": Case(
        lambda options: sets.SlowSamples(160),
        epoch_gap,
        {"batch_size": 16, "shuffle": True, "persistent_workers": True},
    ),
}


class ArrayBatches:
    """The limit for a table: only NumPy's `array[indices]`."""

    def __init__(self, dataset: Any, batch_size: int) -> None:
        import numpy as np

        self.dataset, self.batch_size = dataset, batch_size
        self.array = dataset.tensors[0].numpy()
        self._rng = np.random.default_rng(0)

    def __iter__(self) -> Iterable[Any]:
        order = self._rng.permutation(len(self.array))
        for start in range(0, len(order), self.batch_size):
            yield self.array[order[start : start + self.batch_size]]


def make_loader(case: Case, options: argparse.Namespace) -> Any:
    dataset = case.dataset(options)
    arguments = {"num_workers": options.workers, **case.arguments}
    if arguments["num_workers"] and options.prefetch_factor:
        arguments["prefetch_factor"] = options.prefetch_factor
    if options.kind == "numpy":
        return ArrayBatches(dataset, arguments["batch_size"])
    if options.kind == "stock":
        from torch.utils.data import DataLoader

        return DataLoader(dataset, **arguments)
    import feedline

    if options.kind == "ahead":
        arguments["prefetch_epochs"] = True
    return feedline.DataLoader(dataset, **arguments)


def _start_of_sampling() -> None:
    print("{}", flush=True)


def _end_of_sampling() -> None:
    print("{}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("kind", choices=["stock", "feedline", "ahead", "numpy"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--prefetch-factor", type=int)
    parser.add_argument("--epochs", type=int, default=2, help="timed epochs, after one warm-up epoch")
    parser.add_argument(
        "--step-s", type=float, default=0.0, help="seconds of a training step in epochs that are not timed"
    )
    parser.add_argument("--photos", help="class folders of JPEG files")
    options = parser.parse_args()

    # imports the modules of all loaders before the bare process's memory is measured, whichever loader runs
    import processes
    import torch

    import feedline.torch_loader.data_loader  # noqa: F401

    if options.case in ("photos", "own_photos"):
        import torchvision.datasets
        import torchvision.transforms  # noqa: F401
    torch.set_num_threads(1)
    bare = processes.pss_bytes([os.getpid()])
    case = CASES[options.case]
    if case.run is not first_batch:
        _start_of_sampling()
    figures = case.run(make_loader(case, options), options)
    figures |= {"bare_bytes": bare.total, "bare_own_bytes": bare.total - bare.file}
    print(json.dumps({"case": options.case, "kind": options.kind, **figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
