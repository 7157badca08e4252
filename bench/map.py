# SPDX-License-Identifier: Apache-2.0
"""`tools/bench --map`: measures each kind of workload with this checkout, another one, and the stock loader.

    python bench/map.py [--before CHECKOUT] [--rounds 3] [--only ROW...] [--images 400] [--rows 200000] [--json FILE]

Each measurement is a fresh process; the rounds are interleaved, and every second one runs backwards. Ratios are taken
within a round. CHECKOUT is another checkout of Feedline, for example of the previous commit, with its engine built (by
`tools/test`, or as `_engine` in `python/feedline`). The exit status is 1 if a row takes over 3 % more CPU time than
with CHECKOUT.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import map_rows
from rich.console import Console
from rich.table import Table
from run import rounds, write_record

_HERE = Path(__file__).resolve().parent
_MOST_CPU = 1.03  # CPU time of a row, relative to the other checkout
_OUT = Console(highlight=False, markup=False, width=120)
Results = dict[str, list[dict[str, Any]]]


def measured(row: str, way: str, data: Path, checkout: Path | None) -> dict[str, Any]:
    environment = dict(os.environ)
    if checkout is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(checkout / "python"), environment.get("PYTHONPATH", "")])
    command = [sys.executable, str(_HERE / "map_rows.py"), row, way, str(data)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def tasks_of(rows: list[str], data: Path, before: Path | None) -> dict[str, Any]:
    tasks: dict[str, Any] = {}
    for row in rows:
        ways: list[tuple[str, str, Path | None]] = [("now", "feedline", None)]
        if before is not None:
            ways.append(("before", "feedline", before))
        if map_rows.ROWS[row].stock is not None:
            ways.append(("stock", "stock", None))
        for name, way, checkout in ways:
            tasks[f"{row}, {name}"] = lambda row=row, way=way, checkout=checkout: measured(row, way, data, checkout)
    return tasks


def ratio(results: Results, row: str, name: str, figure: str) -> float | None:
    """Returns the median over the rounds of this checkout's figure divided by that of `name`."""
    others = results.get(f"{row}, {name}")
    if others is None:
        return None
    return statistics.median(a[figure] / b[figure] for a, b in zip(results[f"{row}, now"], others, strict=True))


def goals_of(results: Results, rows: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "goal": f"{row}: CPU time, relative to before",
            "at_most": _MOST_CPU,
            "measured": [
                a["cpu_s_per_1000_images"] / b["cpu_s_per_1000_images"]
                for a, b in zip(results[f"{row}, now"], results[f"{row}, before"], strict=True)
            ],
        }
        for row in rows
        if f"{row}, before" in results
    ]


def show(results: Results, rows: list[str]) -> None:
    table = Table(title="Medians; ratios are medians of the rounds' ratios", title_justify="left")
    for column in ("workload", "samples/s", "CPU-s per 1,000", "rate, before", "CPU, before", "rate, stock"):
        table.add_column(column, justify="left" if column == "workload" else "right")

    def words(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    for row in rows:
        own = results[f"{row}, now"]
        table.add_row(
            map_rows.ROWS[row].title,
            f"{statistics.median(one['images_per_s'] for one in own):,.0f}",
            f"{statistics.median(one['cpu_s_per_1000_images'] for one in own):.3f}",
            words(ratio(results, row, "before", "images_per_s")),
            words(ratio(results, row, "before", "cpu_s_per_1000_images")),
            words(ratio(results, row, "stock", "images_per_s")),
        )
    _OUT.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="checkout to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(map_rows.ROWS), default=list(map_rows.ROWS))
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    started = time.time()
    with tempfile.TemporaryDirectory() as name:
        map_rows.write_data(Path(name), given.images, given.rows)
        results = rounds(tasks_of(given.only, Path(name), given.before), given.rounds)
    show(results, given.only)
    goals = goals_of(results, given.only)
    for goal in goals:
        if statistics.median(goal["measured"]) > _MOST_CPU:
            _OUT.print(f"MISSED {goal['goal']}: {statistics.median(goal['measured']):.2f}")
    record = {"command": "tools/bench --map", "rounds": given.rounds, "goals": goals, "results": results}
    write_record("map", given.json, started, record)
    return 0 if all(goal["met"] for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
