# SPDX-License-Identifier: Apache-2.0
"""Compares feedline.DataLoader with torch's, with the same arguments and two workers, and prints the goals.

Every measurement is a fresh process; the rounds are interleaved and every second one runs backwards, so that a slow
phase of the machine affects all equally. Ratios are taken within a round.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import measure
from rich.console import Console
from rich.table import Table
from run import is_met, rounds, spread, write_record

_HERE = Path(__file__).resolve().parent
_WIDTH = 150  # the columns of a table of ranges
_OUT = Console(highlight=False, markup=False, width=_WIDTH)
Results = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Goal:
    """Returns the ratio of `figure` for `kind` to that for `over` in every round."""

    words: str
    case: str
    figure: str
    at_least: float | None = None
    at_most: float | None = None
    kind: str = "feedline"
    over: str = "stock"

    def measured(self, results: Results) -> list[float]:
        ours, others = results[f"{self.case}, {self.kind}"], results[f"{self.case}, {self.over}"]
        return [a[self.figure] / b[self.figure] for a, b in zip(ours, others, strict=True)]

    def record(self, results: Results) -> dict[str, Any]:
        bound = {"at_least": self.at_least} if self.at_least is not None else {"at_most": self.at_most}
        return {"goal": self.words, **bound, "measured": self.measured(results)}


_OF_PHOTOS = ("photos", "own_photos")  # cases that require --photos

# case -> (description, options of drop_in_loaders.py, kinds other than "stock" and "feedline")
CASES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "photos": ("ImageFolder of JPEG files, batch 64", {"epochs": 1}, []),
    "own_photos": ("a user's class of the same files", {"epochs": 1}, []),
    "table": ("TensorDataset 200,000 x 16, batch 256, 0 workers", {"epochs": 3}, ["numpy"]),
    "large": ("4 MB tensors, batch 16", {"epochs": 2}, []),
    "scalars": ("dict of 20 scalars, batch 64", {"epochs": 2}, []),
    "paths_fork": ("1,000,000 paths, fork", {}, []),
    "paths_spawn": ("1,000,000 paths, spawn", {}, []),
    "gap": ("2 ms samples, batch 16, persistent workers", {"epochs": 9, "step_s": 0.02}, ["ahead"]),
}

GOALS = [
    Goal("photos: times stock", "photos", "samples_per_s", at_least=2.5),
    Goal("own_photos: times stock", "own_photos", "samples_per_s", at_least=6),
    Goal("table: times stock", "table", "samples_per_s", at_least=30),
    Goal("table: share of NumPy's array[indices]", "table", "samples_per_s", at_least=0.5, over="numpy"),
    Goal("large: times stock", "large", "samples_per_s", at_least=1.5),
    Goal("scalars: times stock", "scalars", "samples_per_s", at_least=1.3),
    Goal("paths_fork: first batch, share of stock", "paths_fork", "first_batch_s", at_most=1),
    Goal("paths_spawn: first batch, share of stock", "paths_spawn", "first_batch_s", at_most=1 / 3),
    Goal("gap: share of stock", "gap", "gap_s", at_most=0.2),
    Goal("gap, prefetch_epochs=True: share of stock", "gap", "gap_s", at_most=0.2, kind="ahead"),
    *(Goal(f"{case}: memory, share of stock", case, "peak_own_above_bare", at_most=1) for case in CASES),
    Goal("gap, prefetch_epochs=True: memory, share of stock", "gap", "peak_own_above_bare", at_most=1, kind="ahead"),
]


def why_skipped(case: str, photos: str | None) -> str | None:
    if case not in _OF_PHOTOS:
        return None
    try:
        importlib.import_module("torchvision.datasets")
    except Exception as error:  # a package built for another torch can raise any exception
        return f"torchvision cannot be imported: {type(error).__name__}: {error}"
    return None if photos else "no folder of photos was given (--photos)"


def show(results: Results, goals: list[dict[str, Any]], skipped: dict[str, str]) -> None:
    table = Table(title="Median of the rounds (lowest to highest)", title_justify="left")
    for column in (
        "case",
        "loader",
        "samples/s",
        "first batch, ms",
        "CPU till then, ms",
        "gap, ms",
        "memory, MB",
        "with files, MB",
    ):
        table.add_column(column, justify="left" if column in ("case", "loader") else "right")
    figures = (
        ("samples_per_s", 1, ",.0f"),
        ("first_batch_s", 1e3, ",.0f"),
        ("start_cpu_s", 1e3, ",.0f"),
        ("gap_s", 1e3, ".1f"),
    )
    memory = (("peak_own_above_bare", 1e-6, ".0f"), ("peak_bytes_above_bare", 1e-6, ".0f"))
    for entries in results.values():
        case, kind = entries[0]["case"], entries[0]["kind"]
        cells = [
            spread([entry[name] * unit for entry in entries], form) if name in entries[0] else ""
            for name, unit, form in (*figures, *memory)
        ]
        table.add_row(case, kind, *cells)
    _OUT.print(table)
    table = Table(title="Goals", title_justify="left")
    for column in ("goal", "asked", "measured", "met"):
        table.add_column(column, justify="left" if column == "goal" else "right")
    for goal in goals:
        asked = f"≥ {goal['at_least']:.2f}" if "at_least" in goal else f"≤ {goal['at_most']:.2f}"
        table.add_row(goal["goal"], asked, spread(goal["measured"], ".2f"), "yes" if is_met(goal) else "no")
    _OUT.print(table)
    for case, why in skipped.items():
        _OUT.print(f"skipped: {case} ({CASES[case][0]}): {why}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], metavar="CASE", help=f"default: {' '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--photos", help="class folders of JPEG files")
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-drop-in.json")
    options = parser.parse_args()

    chosen = options.cases or list(CASES)
    skipped = {case: why for case in chosen if (why := why_skipped(case, options.photos))}
    tasks = {}
    for case in chosen:
        if case in skipped:
            continue
        arguments = {**CASES[case][1], **({"photos": options.photos} if case in _OF_PHOTOS else {})}
        for kind in ("stock", "feedline", *CASES[case][2]):
            tasks[f"{case}, {kind}"] = functools.partial(measure, "drop_in_loaders.py", case, kind, **arguments)
    started = time.time()
    results = rounds(tasks, options.rounds)
    goals = [goal.record(results) for goal in GOALS if goal.case in chosen and goal.case not in skipped]
    show(results, goals, skipped)
    command = f"tools/bench --drop-in {' '.join(options.cases)} --rounds {options.rounds}".replace("  ", " ")
    record = {"command": command, "skipped": skipped, "results": results, "goals": goals}
    write_record("drop-in", options.json, started, record)
    return 0 if not skipped and all(is_met(goal) for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
