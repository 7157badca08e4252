# SPDX-License-Identifier: Apache-2.0
"""Measures photos from storage with a latency of 5 ms per read, relative to the same photos in memory.

All loaders are in one process and run an epoch each in turn, every second round backwards; ratios are taken within a
round. `feedline.testing.force` slows the storage down and selects how a loader reads.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, Literal

import processes
from rich.console import Console
from rich.table import Table
from run import is_met, spread, write_record

import feedline
import feedline.testing

_OUT = Console(highlight=False, markup=False, width=120)

# name -> whether the storage is slow, and when samples are prefetched
WAYS: dict[str, tuple[bool, Literal["auto", "never", "threads"]]] = {
    "warm, read by the threads": (False, "never"),
    "warm": (False, "auto"),
    "cold": (True, "auto"),
    "cold, no io_uring": (True, "threads"),
    "cold, read by the threads": (True, "never"),
}
BARE = "warm, read by the threads"


def loader_of(source: str, way: str, options: argparse.Namespace) -> Any:
    is_slow, ahead = WAYS[way]
    feedline.testing.force(read_latency=options.latency_us / 1e6 if is_slow else 0, read_ahead=ahead)
    dataset = (
        feedline.open(source)
        .random_resized_crop(224)
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    return dataset.loader(64, shuffle=True, drop_last=True, num_workers=options.threads, output="numpy")


def epoch(loader: Any) -> dict[str, float]:
    cpu, started = processes.cpu_s([os.getpid()]), time.perf_counter()
    images = sum(len(batch[1]) for batch in loader)
    wall = time.perf_counter() - started
    cpu = processes.cpu_s([os.getpid()]) - cpu
    return {"images_per_s": images / wall, "cpu_s_per_1000_images": 1000 * cpu / images}


def measure(name: str, source: str, options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    loaders = {way: loader_of(source, way, options) for way in WAYS}
    results: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for loader in loaders.values():
        epoch(loader)  # warms the page cache, and detects slow reads
    for i in range(options.rounds):
        for way in reversed(WAYS) if i % 2 else WAYS:
            results[way].append(epoch(loaders[way]))
    for way, loader in loaders.items():
        reads = [line for line in loader.explain().splitlines() if line.startswith("reads")]
        _OUT.print(f"{name}, {way}: {reads[0][11:] if reads else 'one by one'}")
        loader.close()
    return {f"{name}, {way}": entries for way, entries in results.items()}


def ratios(results: dict[str, list[dict[str, Any]]], name: str, way: str) -> list[float]:
    pairs = zip(results[f"{name}, {way}"], results[f"{name}, {BARE}"], strict=True)
    return [one["images_per_s"] / bare["images_per_s"] for one, bare in pairs]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", help="a folder of class folders")
    parser.add_argument("shards", help="the same photos in tar files")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--latency-us", type=int, default=5000)
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-cold.json")
    options = parser.parse_args()
    started = time.time()
    results: dict[str, list[dict[str, Any]]] = {}
    goals: list[dict[str, Any]] = []
    for name, source in (("folder", options.photos), ("tars", options.shards)):
        results |= measure(name, source, options)
        for way, least in (("warm", 0.97), ("cold", 0.9), ("cold, no io_uring", 0.9)):
            goals.append({"goal": f"{name}, {way} / {BARE}", "at_least": least, "measured": ratios(results, name, way)})
    table = Table(title="Median of the rounds (lowest to highest)", title_justify="left")
    for column in ("loader", "images/s", "CPU-s per 1,000"):
        table.add_column(column, justify="left" if column == "loader" else "right")
    for name, entries in results.items():
        figures = [[entry[key] for entry in entries] for key in ("images_per_s", "cpu_s_per_1000_images")]
        table.add_row(name, spread(figures[0], ",.0f"), spread(figures[1], ".2f"))
    _OUT.print(table)
    for goal in goals:
        met = "met" if is_met(goal) else "missed"
        _OUT.print(f"{goal['goal']}: at least {goal['at_least']:g}, {spread(goal['measured'], '.3g')}: {met}")
    command = f"tools/bench --cold --rounds {options.rounds} --threads {options.threads}"
    write_record("cold", options.json, started, {"command": command, "results": results, "goals": goals})
    return 0 if all(is_met(goal) for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
