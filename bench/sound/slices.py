# SPDX-License-Identifier: Apache-2.0
"""2 s slices of WAV and FLAC files through loaders: Feedline, and soundfile in torch's DataLoader.

::

    python bench/sound/slices.py [--files 200] [--seconds 13] [--workers 2] [--rounds 3]

Prints, for each kind of file, slices per second of CPU time (user and system, of all processes) and of wall time, as
the median of the rounds, which alternate between the loaders. Files are in the page cache.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import soundfile
import torch

import feedline

RATE, SLICE_S, BATCH = 16_000, 2.0, 16


def make_files(folder: Path, kind: str, files: int, seconds: float) -> list[str]:
    generator = numpy.random.default_rng(0)
    times = numpy.arange(round(seconds * RATE)) / RATE
    paths = []
    for i in range(files):
        envelope = 0.3 * (1 + numpy.sin(2 * numpy.pi * 3 * times + i))
        voice = sum(numpy.sin(2 * numpy.pi * 110 * k * (1 + i % 7 / 10) * times) / k for k in range(1, 12))
        path = folder / f"{i:05}.{kind}"
        soundfile.write(path, 0.3 * envelope * voice + generator.normal(0, 0.003, len(times)), RATE, subtype="PCM_16")
        paths.append(str(path))
    return paths


class Slices(torch.utils.data.Dataset[Any]):
    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with soundfile.SoundFile(self.paths[index]) as file:
            begin = int(torch.randint(0, file.frames - int(SLICE_S * RATE), ()))
            file.seek(begin)
            return torch.from_numpy(file.read(int(SLICE_S * RATE), dtype="float32"))[None]


def with_torch(paths: list[str], workers: int) -> Iterator[Any]:
    yield from torch.utils.data.DataLoader(Slices(paths), BATCH, shuffle=True, num_workers=workers)


def with_feedline(paths: list[str], workers: int) -> Iterator[Any]:
    data = feedline.files(paths).audio(duration=SLICE_S, random=True)
    for batch in data.loader(BATCH, shuffle=True, num_workers=workers):
        yield batch.audio


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(loader: Callable[[list[str], int], Iterator[Any]], paths: list[str], workers: int) -> tuple[float, float]:
    """Returns slices per second of CPU time and of wall time. Starting workers counts, as in each epoch of torch."""
    cpu, wall, slices = cpu_seconds(), time.perf_counter(), 0
    for batch in loader(paths, workers):
        assert tuple(batch.shape[1:]) == (1, int(SLICE_S * RATE))
        slices += len(batch)
    return slices / (cpu_seconds() - cpu), slices / (time.perf_counter() - wall)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=13.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=20, help="times that each file occurs in an epoch")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{options.files} files of {options.seconds:g} s, {os.cpu_count()} CPUs, {options.workers} workers")
    for kind in ("wav", "flac"):
        with tempfile.TemporaryDirectory() as folder:
            paths = make_files(Path(folder), kind, options.files, options.seconds) * options.repeat
            figures: dict[str, list[tuple[float, float]]] = {"torch": [], "feedline": []}
            for _ in range(options.rounds):
                figures["torch"].append(measure(with_torch, paths, options.workers))
                figures["feedline"].append(measure(with_feedline, paths, options.workers))
        medians = {
            name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in figures.items()
        }
        for name, (cpu, wall) in medians.items():
            print(f"{kind:5} {name:9} {cpu:8.0f} slices per CPU second, {wall:8.0f} per second")
        print(f"{kind:5} ratio     {medians['feedline'][0] / medians['torch'][0]:8.1f} of CPU time")


if __name__ == "__main__":
    main()
