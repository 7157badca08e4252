# SPDX-License-Identifier: Apache-2.0
"""Measures orders without data: time and memory of a permutation, of torch's samplers, and of resuming in the middle.

Every measurement is a fresh process; the rounds are interleaved and every second one runs backwards.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from order_cases import LISTED
from rich.console import Console
from rich.table import Table
from run import is_met, rounds, spread, write_record

_HERE = Path(__file__).resolve().parent
_OUT = Console(highlight=False, markup=False, width=120)

SIZES = [10**3, 10**6, 1_300_000, 10**9, 10**10]
POSITIONS = [1, 10**6, 10**9]
# name -> case of order_cases.py, and its number
CASES: dict[str, tuple[str, int]] = {
    **{f"Feedline's permutation, {size:,}": ("permutation", size) for size in SIZES},
    f"NumPy's permutation, {LISTED:,}": ("numpy_permutation", LISTED),
    f"torch.randperm, {LISTED:,}": ("torch_randperm", LISTED),
    f"torch's RandomSampler, {LISTED:,}": ("random_sampler", LISTED),
    f"torch's DistributedSampler, {LISTED:,}, rank 0 of 8": ("distributed_sampler", LISTED),
    f"Feedline's loader, {SIZES[-1]:,}": ("plan_memory", SIZES[-1]),
    **{f"resume at {position:,}": ("resume", position) for position in POSITIONS},
}


def goals(results: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    def measured(name: str, figure: str) -> list[float]:
        return [entry[figure] for entry in results[name]]

    found: list[dict[str, Any]] = []
    for name, (case, number) in CASES.items():
        if case == "permutation":
            words = f"ns per index of {number:,}"
            found.append({"goal": words, "at_most": 100, "measured": measured(name, "ns_per_index")})
        elif case == "plan_memory":
            words = f"bytes of a loader of {number:,} samples"
            found.append({"goal": words, "at_most": 1_000_000, "measured": measured(name, "peak_bytes")})
        elif case == "resume":
            words = f"resume at {number:,}: to the first batch, s"
            found.append({"goal": words, "at_most": 0.05, "measured": measured(name, "first_batch_s")})
    return found


def measure(case: str, number: int) -> dict[str, Any]:
    command = [sys.executable, str(_HERE / "order_cases.py"), case, str(number)]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def show(results: dict[str, list[dict[str, Any]]]) -> None:
    table = Table(title="Median of the rounds (lowest to highest)", title_justify="left")
    for column in ("order", "ns per index", "first, ms", "memory, MB"):
        table.add_column(column, justify="left" if column == "order" else "right")
    figures = {"ns_per_index": (1, ".1f"), "first": (1000, ".2f"), "peak_bytes": (1e-6, ".1f")}
    for name, entries in results.items():
        cells = []
        for figure, (scale, form) in figures.items():
            keys = ["first_index_s", "first_batch_s"] if figure == "first" else [figure]
            values = [scale * entry[key] for entry in entries for key in keys if key in entry]
            cells.append(spread(values, form) if values else "")
        table.add_row(name, *cells)
    _OUT.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-order.json")
    options = parser.parse_args()
    started = time.time()
    tasks = {name: functools.partial(measure, case, number) for name, (case, number) in CASES.items()}
    results = rounds(tasks, options.rounds)
    show(results)
    reached = goals(results)
    for goal in reached:
        met = "met" if is_met(goal) else "missed"
        _OUT.print(f"{goal['goal']}: at most {goal['at_most']:g}, {spread(goal['measured'], '.3g')}: {met}")
    command = f"tools/bench --order --rounds {options.rounds}"
    write_record("order", options.json, started, {"command": command, "results": results, "goals": reached})
    return 0 if all(is_met(goal) for goal in reached) else 1


if __name__ == "__main__":
    sys.exit(main())
