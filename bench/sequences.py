# SPDX-License-Identifier: Apache-2.0
"""Token files, arrays, and images with boxes in memory: Feedline beside torch's loader, and NumPy by hand.

Every measurement is a fresh process; the rounds are interleaved and every second one runs backwards. Ratios are taken
within a round. The tokens are random: a window costs the same whatever is in it.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from drop_in import Goal
from measure import measure
from rich.console import Console
from rich.table import Table
from run import is_met, rounds, spread, write_record

_OUT = Console(highlight=False, markup=False, width=120)
_TOKENS = 50_000_000

GOALS = [
    Goal("tokens: times torch's loader over a mapped file", "tokens", "elements_per_s", at_least=20),
    Goal("tokens: share of NumPy's fancy indexing", "tokens", "elements_per_s", at_least=1, over="numpy"),
    Goal("arrays: times torch's loader, no workers", "arrays", "elements_per_s", at_least=30),
    Goal("images, masks and boxes in memory: times torchvision v2 in workers", "scenes", "elements_per_s", at_least=3),
    Goal("arrays: share of NumPy's array[indices]", "arrays", "elements_per_s", at_least=0.5, over="numpy"),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-sequences.json")
    options = parser.parse_args()
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens.bin"
        np.random.default_rng(0).integers(0, 50_000, _TOKENS, dtype=np.uint16).tofile(path)
        tasks = {
            f"{case}, {kind}": functools.partial(measure, "sequence_loaders.py", case, kind, tokens=path)
            for case in ("tokens", "arrays")
            for kind in ("stock", "feedline", "numpy")
        }
        for kind in ("stock", "feedline"):
            tasks[f"scenes, {kind}"] = functools.partial(measure, "sequence_loaders.py", "scenes", kind, tokens=path)
        results = rounds(tasks, options.rounds)
    goals = [goal.record(results) for goal in GOALS]
    table = Table(title="Median of the rounds (lowest to highest)", title_justify="left")
    for column in ("case", "million elements/s", "memory, MB"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for name, entries in results.items():
        speed = spread([entry["elements_per_s"] / 1e6 for entry in entries], ",.1f")
        table.add_row(name, speed, spread([entry["peak_bytes_above_bare"] / 1e6 for entry in entries], ",.0f"))
    _OUT.print(table)
    for goal in goals:
        met = "met" if is_met(goal) else "missed"
        _OUT.print(f"{goal['goal']}: asked {goal['at_least']:g}, {spread(goal['measured'], '.2f')}: {met}")
    command = f"tools/bench --sequences --rounds {options.rounds}"
    write_record("sequences", options.json, started, {"command": command, "results": results, "goals": goals})
    return 0 if all(is_met(goal) for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
