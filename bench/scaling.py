# SPDX-License-Identifier: Apache-2.0
"""Measures images per second on the available threads, and models larger numbers of threads (bench/scaling.md).

Prints CPU time per image, alternating between 1 and 2 threads; memory traffic per image; this machine's memcpy
bandwidth; and the model's images per second for up to 192 threads, with the limiting factor. The program lock_time
(bench/images/lock_time.cpp) measures the cost of the pipeline's lock: --lock NAME=FILE reads its output, once for each
compared version; the model uses the last one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import processes
from rich.console import Console
from rich.table import Table
from run import spread, write_record

import feedline

_OUT = Console(highlight=False, markup=False, width=120)
_COPIED = 64 << 20  # bytes: much larger than the caches that two threads share


def epoch(source: str, threads: int) -> dict[str, float]:
    """Returns CPU microseconds per image, the busy share of time, and the stages' output bytes per image."""
    dataset = (
        feedline.open(source)
        .random_resized_crop(224)
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    with dataset.loader(64, shuffle=True, drop_last=True, num_workers=threads, output="numpy") as loader:
        cpu, started = processes.cpu_s([os.getpid()]), time.perf_counter()
        images = sum(len(batch[1]) for batch in loader)
        wall = time.perf_counter() - started
        cpu = processes.cpu_s([os.getpid()]) - cpu
        stages = loader.stats()["stages"]
    figures = {
        "cpu_us": 1e6 * cpu / images,
        "images_per_s": images / wall,
    }
    figures |= {f"{name}_bytes": stages[name]["bytes"] / images for name in ("storage", "decode", "transform")}
    return figures


def copy_bytes_per_s(threads: int) -> float:
    """Returns the bytes read and written per second by this many copying threads."""
    blocks = [(np.zeros(_COPIED, np.uint8), np.zeros(_COPIED, np.uint8)) for _ in range(threads)]
    times = 4

    def copy(pair: tuple[Any, Any]) -> None:
        for _ in range(times):
            np.copyto(pair[0], pair[1])

    started = time.perf_counter()
    workers = [threading.Thread(target=copy, args=(pair,)) for pair in blocks]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return 2 * times * threads * _COPIED / (time.perf_counter() - started)


def lock_us_of(path: Path) -> dict[int, float]:
    """Returns microseconds under the lock per image, by number of threads: the median of lock_time's lines."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    lines = [line for line in lines if line["us_per_image"] > 0]
    if not lines:
        raise SystemExit(f"scaling.py: {path} has no output of lock_time; run build/.../lock_time THREADS > {path}")
    by_threads: dict[int, list[float]] = {}
    for line in lines:
        by_threads.setdefault(line["threads"], []).append(line["us_per_image"])
    return {threads: statistics.median(values) for threads, values in sorted(by_threads.items())}


def lock_us_at(measured: dict[int, float], threads: int) -> float:
    """Returns the measurement for the next larger number of threads, or for the largest: never an underestimate."""
    above = [us for count, us in measured.items() if count >= threads]
    return max(above[:1] + [us for count, us in measured.items() if count <= threads])


def model(
    cpu_us: float, growth: float, lock_us: float, image_bytes: float, bandwidth: float, threads: int
) -> tuple[float, str]:
    """Returns images per second and the limiting factor: the lowest of the three limits in bench/scaling.md."""
    limits = {
        "threads": threads * 1e6 / (cpu_us * (1 + growth * (threads - 1))),
        "memory": bandwidth / image_bytes,
    }
    if lock_us > 0:
        limits["lock"] = 1e6 / lock_us
    limit = min(limits, key=limits.__getitem__)
    return limits[limit], limit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--lock", action="append", default=[], metavar="NAME=FILE", help="output of lock_time")
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-scaling.json")
    options = parser.parse_args()
    if wrong := [given for given in options.lock if "=" not in given]:
        parser.error(f"--lock must be NAME=FILE, got {wrong[0]!r}")
    locks = {name: lock_us_of(Path(path)) for name, path in (given.split("=", 1) for given in options.lock)}
    started = time.time()
    epoch(options.source, 2)
    rounds = [{n: epoch(options.source, n) for n in ((1, 2) if i % 2 else (2, 1))} for i in range(options.rounds)]
    bandwidth = max(copy_bytes_per_s(2) for _ in range(options.rounds))

    def middle(threads: int, name: str) -> float:
        return statistics.median(entry[threads][name] for entry in rounds)

    # never below 0: if a second thread makes images cheaper, this is noise
    growth = max(0.0, statistics.median(entry[2]["cpu_us"] / entry[1]["cpu_us"] for entry in rounds) - 1)
    # each stage's output is written once and read once, as if it were never cached; stored bytes are copied once more
    image_bytes = 2 * sum(middle(1, f"{name}_bytes") for name in ("storage", "decode", "transform")) + middle(
        1, "storage_bytes"
    )
    for threads in (1, 2):
        cpu = [entry[threads]["cpu_us"] for entry in rounds]
        _OUT.print(
            f"{threads} thread(s): {spread(cpu, '.0f')} us of CPU time an image,"
            f" {middle(threads, 'images_per_s'):,.0f} images/s"
        )
    _OUT.print(
        f"a second thread makes an image {100 * growth:.1f} % more expensive; {image_bytes / 1e6:.2f} MB an image"
    )
    _OUT.print(f"memory: {bandwidth / 1e9:.1f} GB/s by two copying threads")
    table = Table("threads", "images/s", "of one thread times N", "limited by", *(f"lock, {name}" for name in locks))
    rates = {}
    for threads in (1, 2, 4, 8, 16, 32, 64, 128, 192):
        lock_us = {name: lock_us_at(measured, threads) for name, measured in locks.items()}
        latest = list(lock_us.values())[-1] if lock_us else 0.0
        rate, limit = model(middle(1, "cpu_us"), growth, latest, image_bytes, bandwidth, threads)
        rates[str(threads)] = {"images_per_s": rate, "limit": limit, "lock_us": lock_us}
        share = 100 * rate * middle(1, "cpu_us") / 1e6 / threads
        at_most = [f"{1e6 / us:,.0f}" for us in lock_us.values()]
        table.add_row(str(threads), f"{rate:,.0f}", f"{share:.0f} %", limit, *at_most)
    _OUT.print(table)
    results = {
        "rounds": rounds,
        "growth": growth,
        "lock_us": {name: {str(n): us for n, us in measured.items()} for name, measured in locks.items()},
        "image_bytes": image_bytes,
        "copy_bytes_per_s": bandwidth,
    }
    command = f"bench/scaling.py --rounds {options.rounds}"
    write_record("scaling", options.json, started, {"command": command, **results, "modelled": rates, "goals": []})
    return 0


if __name__ == "__main__":
    sys.exit(main())
