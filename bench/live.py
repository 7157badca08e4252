# SPDX-License-Identifier: Apache-2.0
"""Measures the gain or loss of num_workers="auto" compared with fixed numbers of threads (docs/tuning-live.md).

Three loops use the same photos: one computes with torch on all CPUs, one only waits (as for a GPU), and one does
nothing, so that the loader is the limit. For each loop, an adapting loader and loaders with fixed numbers of threads
alternate for a few seconds each in one process, after a settling time. Prints steps per second and CPU time per step of
every loader, and the median ratio to the adapting loader.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import processes
import torch
from rich.console import Console
from rich.table import Table

import feedline

_OUT = Console(highlight=False, markup=False, width=120)
_BATCH = 32


def loops(step_s: float) -> dict[str, Callable[[], None]]:
    """The work of a training loop's step, about `step_s` seconds without waiting for the batch."""
    left, right = torch.randn(384, 384), torch.randn(384, 384)
    started = time.perf_counter()
    for _ in range(50):
        left @ right
    products = max(1, round(50 * step_s / (time.perf_counter() - started)))

    def compute() -> None:
        for _ in range(products):
            left @ right

    return {"computes": compute, "waits": lambda: time.sleep(step_s), "does nothing": lambda: None}


def run(batches: Iterator[Any], body: Callable[[], None], seconds: float) -> dict[str, float]:
    cpu, started, steps = processes.cpu_s([os.getpid()]), time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        next(batches)
        body()
        steps += 1
    wall = time.perf_counter() - started
    return {"steps_per_s": steps / wall, "cpu_ms": 1e3 * (processes.cpu_s([os.getpid()]) - cpu) / steps}


def compare(
    source: str, body: Callable[[], None], threads: list[int | str], options: argparse.Namespace
) -> dict[str, Any]:
    """Returns the rounds of each loader, and the final settings of the adapting loader."""
    dataset = feedline.open(source).random_resized_crop(224).random_horizontal_flip()
    opened = {str(count): dataset.loader(_BATCH, shuffle=True, num_workers=count, epochs=math.inf) for count in threads}
    turns = {name: iter(loader) for name, loader in opened.items()}
    for name, batches in turns.items():
        run(batches, body, options.settle if name == "auto" else 1)
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in turns}
    for number in range(options.rounds):
        names = list(turns) if number % 2 == 0 else list(turns)[::-1]
        for name in names:
            rounds[name].append(run(turns[name], body, options.seconds))
    controller = opened["auto"].stats()["controller"]
    for loader in opened.values():
        loader.close()
    return {"rounds": rounds, "controller": controller}


def show(name: str, result: dict[str, Any]) -> None:
    controller = result["controller"]
    table = Table(title=f"the loop {name}; auto: {controller['threads']} threads, {controller['changed']} changes")
    for column in ("threads", "steps/s", "CPU ms a step", "steps/s against auto", "CPU against auto"):
        table.add_column(column)
    auto = result["rounds"]["auto"]
    for threads, rounds in result["rounds"].items():
        cells = []
        for figure in ("steps_per_s", "cpu_ms"):
            cells.append(f"{statistics.median(r[figure] for r in rounds):.1f}")
        for figure in ("steps_per_s", "cpu_ms"):
            ratios = sorted(mine[figure] / its[figure] for mine, its in zip(rounds, auto, strict=True))
            cells.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        table.add_row(threads, *cells)
    _OUT.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("source", help="a folder of photos, or shards")
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, len(os.sched_getaffinity(0))}))
    parser.add_argument("--step", type=float, default=0.04, help="seconds of the loop's work per step")
    parser.add_argument("--settle", type=float, default=20, help="seconds before the first round")
    parser.add_argument("--seconds", type=float, default=3, help="seconds per turn")
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    for name, body in loops(options.step).items():
        show(name, compare(options.source, body, ["auto", *options.threads], options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
