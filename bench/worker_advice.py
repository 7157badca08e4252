# SPDX-License-Identifier: Apache-2.0
"""Compares the advised number of workers with the best number, which is found by trying all.

    python bench/worker_advice.py                          20 simulated hosts and scripts; takes a minute
    python bench/worker_advice.py --measured --rounds 3    real loaders, on this machine's CPUs

The simulated loop is the one that diagnose's model is tested with (tests/python/diagnose/simulated_loader.py); the
hosts differ in cores, hardware threads, ranks and storage, and the scripts in CPU time, waiting and step. With
--measured, torch's DataLoader runs with samples of the same CPU time and wait, on as many CPUs as the case has, if this
machine has enough; no other programs must run, because they take more CPU time from few workers than from many. Advice
is near if its throughput is within 10 % of the best. This is not a test.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python" / "diagnose"))
from simulated_loader import Load, batches_per_s

from feedline.machine.worker_count import WorkerCount, worker_count

NEAR = 0.9  # of the best throughput
GOAL = 18  # minimum number of the 20 cases for which the advice is near the best
SIBLING = 0.25  # additional throughput of a core's second hardware thread
ROUNDS = 40  # number of batches per worker
# number of concurrent reads of a file server and of a spinning disk; other reads wait
SERVER_READERS, DISK_READERS = 8, 4


@dataclass(frozen=True)
class Case:
    """A host and a script. Times are in ms per batch."""

    name: str
    threads: int
    cores: int
    cpu_ms: float
    wait_ms: float
    step_ms: float
    kind: str | None = None
    ranks: int = 1
    step_cpu_ms: float = 1.0

    @property
    def advice(self) -> WorkerCount:
        return worker_count(self.threads, self.cores, self.ranks, self.kind)

    @property
    def numbers(self) -> range:
        """Returns the numbers of workers to try."""
        return range(2 * max(self.threads // self.ranks, 1) + 2)


CASES = (
    Case("a laptop, photos on NVMe, fast step", 8, 4, 120, 2, 15, "nvme"),
    Case("a workstation, photos on NVMe", 16, 8, 160, 4, 45, "nvme"),
    Case("a workstation, photos on an SSD, fast step", 16, 8, 160, 12, 10, "ssd"),
    Case("a workstation, 16 cores without a second thread", 16, 16, 160, 4, 20, "nvme"),
    Case("photos in memory, fast step", 16, 8, 150, 0, 10, "memory"),
    Case("a large model", 32, 16, 160, 4, 400, "nvme"),
    Case("a small model, tokens", 16, 8, 6, 1, 10, "nvme"),
    Case("heavy augmentation", 32, 16, 700, 4, 20, "nvme"),
    Case("a spinning disk, many seeks", 8, 4, 40, 60, 10, "disk"),
    Case("a spinning disk, large files", 16, 8, 150, 10, 60, "disk"),
    Case("NFS, photos, fast step", 32, 16, 120, 60, 5, "network"),
    Case("NFS, slow server", 64, 32, 60, 300, 50, "network"),
    Case("object storage, small requests, fast step", 16, 8, 60, 400, 15, "remote"),
    Case("object storage, large shards", 32, 16, 150, 150, 40, "remote"),
    Case("8 GPUs of one host, fast step", 128, 64, 160, 4, 10, "nvme", 8),
    Case("4 GPUs, few cores", 32, 16, 160, 4, 90, "nvme", 4),
    Case("2 GPUs, no second threads", 24, 24, 120, 8, 30, "ssd", 2),
    Case("a container of 4 CPUs, fast step", 4, 4, 160, 4, 20, None),
    Case("a container of 2 CPUs", 2, 2, 40, 10, 50, None),
    Case("a virtual disk of a cloud, fast step", 16, 8, 160, 20, 10, "virtual disk"),
)


def simulated(case: Case, workers: int) -> float:
    """Returns batches per second of one rank, over enough batches to make the initially filled queue negligible."""
    batches = max(160, ROUNDS * workers)
    share = max(case.threads // case.ranks, 1)
    cores = max(min(case.cores, case.threads) // case.ranks, 1)
    cpus = cores + SIBLING * (share - cores)
    load = Load(waiting(case, workers), case.cpu_ms, 1.0, 0.5, case.step_ms - case.step_cpu_ms, case.step_cpu_ms, 0.15)
    return batches_per_s(load, workers, 2, cpus, batches, seed=1)


def waiting(case: Case, workers: int) -> float:
    """Returns the ms that a batch waits for storage, when each rank has `workers` readers."""
    readers = max(workers, 1) * case.ranks
    if case.kind == "network":
        return case.wait_ms * max(readers / SERVER_READERS, 1.0)
    if case.kind == "disk":  # with more readers, a disk seeks more often
        return case.wait_ms * max(readers / DISK_READERS, 1.0) * (1 + 0.1 * max(readers - DISK_READERS, 0))
    return case.wait_ms


# A real loop: measures work by the CPU clock, so that a busy machine changes its duration, but not its amount.
_SCRIPT = """
import json, os, sys, time, torch
cpus, workers, cpu_ms, wait_ms, step_ms, batches = json.loads(sys.argv[1])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cpus])
torch.set_num_threads(1)
class Batches(torch.utils.data.Dataset):
    def __len__(self): return 10**6
    def __getitem__(self, i):
        until = time.thread_time() + cpu_ms / 1000
        while time.thread_time() < until: sum(range(200))
        time.sleep(wait_ms / 1000)
        return torch.zeros(1000)
loader = iter(torch.utils.data.DataLoader(Batches(), batch_size=None, num_workers=workers))
for _ in range(3 * workers + 1): next(loader)
begin = time.perf_counter()
for _ in range(batches):
    next(loader)
    time.sleep(step_ms / 1000)
print(batches / (time.perf_counter() - begin))
os._exit(0)
"""


def measured(case: Case, workers: int, batches: int) -> float:
    """Returns batches per second of a real loop in a new process."""
    wanted = json.dumps([case.threads, workers, case.cpu_ms, case.wait_ms, case.step_ms, batches])
    done = subprocess.run([sys.executable, "-c", _SCRIPT, wanted], check=True, capture_output=True, text=True)
    return float(done.stdout)


def row_of(case: Case, rates: dict[int, float]) -> dict[str, Any]:
    """Compares the advice with the best number in `rates`."""
    advice = case.advice
    best = max(rates, key=lambda number: (rates[number], -number))
    return {
        "case": case.name,
        "advised": advice.workers,
        "why": advice.why,
        "best": best,
        "batches_per_s": rates[advice.workers],
        "best_batches_per_s": rates[best],
        "reached": rates[advice.workers] / rates[best],
    }


def simulate(cases: tuple[Case, ...]) -> list[dict[str, Any]]:
    return [row_of(case, {number: simulated(case, number) for number in case.numbers}) for case in cases]


def measure(cases: tuple[Case, ...], rounds: int, batches: int, usable: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the rows of the cases that are possible on this machine, and the names of the others."""
    rows, left = [], []
    for case in cases:
        if case.threads > usable or case.ranks > 1 or case.cores != case.threads:
            left.append(case.name)
            continue
        found: dict[int, list[float]] = {number: [] for number in case.numbers}
        for number in range(rounds):  # alternating order, so that drift of the machine cancels
            for workers in case.numbers if number % 2 == 0 else reversed(case.numbers):
                found[workers].append(measured(case, workers, batches))
        rows.append(row_of(case, {workers: statistics.median(one) for workers, one in found.items()}))
    return rows, left


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measured", action="store_true", help="run real loaders on this machine")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    left: list[str] = []
    if options.measured:
        rows, left = measure(CASES, options.rounds, options.batches, len(os.sched_getaffinity(0)))
    else:
        rows = simulate(CASES)
    near = sum(row["reached"] >= NEAR for row in rows)
    if options.json:
        print(json.dumps({"measured": options.measured, "rows": rows, "near": near, "not_judged": left}, indent=2))
        return 0
    print("measured on this machine" if options.measured else "simulated")
    for row in rows:
        print(
            f"{row['case']:<52} advised {row['advised']:>3}, best {row['best']:>3}: {row['reached']:>4.0%} of the best"
        )
    goal = "" if options.measured else f" (goal: {GOAL})"
    print(f"{near} of {len(rows)} within 10 % of the best throughput{goal}")
    if left:
        print(f"skipped, because this machine has too few CPUs or no second hardware threads: {', '.join(left)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
