# SPDX-License-Identifier: Apache-2.0
"""The loops that diagnose_overhead.py runs. Each does a fixed amount of work and writes its wall and CPU time.

    python diagnose_overhead_loops.py CASE FOLDER RESULT

The CPU time includes this process and its workers, which have ended by then. Generated data is in FOLDER.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

_FILES = 2000
_MATRIX = torch.rand(128, 128)


def work(times: int) -> None:
    """Takes about 0.1 ms, and uses more memory than a core's L1 cache."""
    for _ in range(times):
        torch.tanh(_MATRIX @ _MATRIX)


class Worked(Dataset[Any]):
    """Samples of `times` units of work."""

    def __init__(self, count: int, times: int) -> None:
        self.count, self.times = count, times

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        work(self.times)
        return index


class Files(Dataset[Any]):
    """Small files; each sample opens one."""

    def __init__(self, folder: Path) -> None:
        self.paths = [folder / f"{number}.bin" for number in range(_FILES)]
        for path in self.paths:
            if not path.exists():
                path.write_bytes(bytes(4096))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with open(self.paths[index], "rb") as file:
            return np.frombuffer(file.read(), np.uint8)


def loop(case: str, folder: Path) -> Iterable[int]:
    """Yields the amount of work in a step after each batch."""
    if case == "native":
        import feedline

        source = feedline.arrays(x=np.zeros((64_000, 64), np.float32))
        for _epoch in range(4):
            for _batch in source.loader(batch_size=64, num_workers=2):
                yield 3
        return
    loader, step, epochs = {
        "short_steps": (DataLoader(Worked(3000, 0), batch_size=1), 4, 1),
        "medium_steps": (DataLoader(Worked(100, 0), batch_size=1), 120, 1),
        "workers": (DataLoader(Worked(800, 8), batch_size=4, num_workers=6), 4, 1),
        "many_files": (DataLoader(Files(folder), batch_size=16, num_workers=2, persistent_workers=True), 2, 8),
        "no_workers": (DataLoader(Worked(1600, 6), batch_size=8), 8, 1),
    }[case]
    for _epoch in range(epochs):
        for _batch in loader:
            yield step


def cpu_s() -> float:
    """Returns the CPU time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    case, folder, result = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if case == "many_files":
        Files(folder)
    work(100)
    begin, cpu = time.perf_counter(), cpu_s()
    for step in loop(case, folder):
        work(step)
    wall = time.perf_counter() - begin
    result.write_text(json.dumps({"wall_s": wall, "cpu_s": cpu_s() - cpu}))


if __name__ == "__main__":
    main()
