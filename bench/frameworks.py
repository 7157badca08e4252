# SPDX-License-Identifier: Apache-2.0
"""Measures samples per second of frameworks' training loops with torch's loader and, by changing one line, Feedline's.

Every framework runs in a separate process, in which both loaders alternate; ratios are taken within a round.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from run import is_met, spread, write_record

_HERE = Path(__file__).resolve().parent
_OUT = Console(highlight=False, markup=False, width=150)
FRAMEWORKS = ("torch", "accelerate", "lightning", "transformers", "timm")
GOALS = {"photos": 3.0, "python": 1.0}  # minimum ratio to torch's loader


def cases(only: list[str]) -> list[tuple[str, str]]:
    """timm's loop supports only images."""
    return [(name, data) for data in GOALS for name in only or FRAMEWORKS if (name, data) != ("timm", "python")]


def why_skipped(name: str, data: str, photos: str | None) -> str | None:
    if data == "photos" and not photos:
        return "no folder of photos was given (--photos)"
    for module in (name, *(("torchvision.datasets",) if data == "photos" else ())):
        try:
            importlib.import_module(module)
        except Exception as error:  # a package built for another torch can raise any exception
            return f"{module} cannot be imported: {type(error).__name__}: {error}"
    return None


def measured(name: str, data: str, options: argparse.Namespace) -> dict[str, list[float]]:
    command = [sys.executable, str(_HERE / "framework_loops.py"), name, data, "--rounds", str(options.rounds)]
    command += ["--workers", str(options.workers), *(("--photos", options.photos) if options.photos else ())]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with exit status {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(results: dict[str, dict[str, list[float]]], goals: list[dict[str, Any]], skipped: dict[str, str]) -> None:
    table = Table(title="Median of the turns (lowest to highest)", title_justify="left")
    for column in ("loop", "torch's loader, samples/s", "Feedline's", "times", "asked", "met"):
        table.add_column(column, justify="left" if column == "loop" else "right")
    for (case, rates), goal in zip(results.items(), goals, strict=True):
        cells = [spread(rates[kind], ",.0f") for kind in ("stock", "feedline")]
        asked = f"≥ {goal['at_least']:g}"
        table.add_row(case, *cells, spread(goal["measured"], ".2f"), asked, "yes" if is_met(goal) else "no")
    _OUT.print(table)
    for case, why in skipped.items():
        _OUT.print(f"skipped: {case}: {why}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frameworks", nargs="*", choices=[[], *FRAMEWORKS], metavar="FRAMEWORK")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--photos", help="class folders of JPEG files")
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-frameworks.json")
    options = parser.parse_args()

    started, results, goals, skipped = time.time(), {}, [], {}
    for name, data in cases(options.frameworks):
        case = f"{name}, {data}"
        why = why_skipped(name, data, options.photos)
        if why is not None:
            skipped[case] = why
            continue
        _OUT.print(f"{case}: load {os.getloadavg()[0]:.1f}")
        rates = results[case] = measured(name, data, options)
        ratios = [ours / theirs for ours, theirs in zip(rates["feedline"], rates["stock"], strict=True)]
        goals.append({"goal": f"{case}: times torch's loader", "at_least": GOALS[data], "measured": ratios})
        _OUT.print(f"{case}: {spread(ratios, '.2f')} times torch's loader")
    show(results, goals, skipped)
    command = f"tools/bench --frameworks {' '.join(options.frameworks)} --rounds {options.rounds}".replace("  ", " ")
    write_record(
        "frameworks",
        options.json,
        started,
        {"command": command, "skipped": skipped, "results": results, "goals": goals},
    )
    return 0 if not skipped and all(is_met(goal) for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
