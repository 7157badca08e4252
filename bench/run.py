# SPDX-License-Identifier: Apache-2.0
"""Measures the figures of the README: Feedline compared with the stock DataLoader and with only libjpeg-turbo.

Every measurement is a fresh process; the rounds are interleaved and every second one runs backwards, so that a slow
phase of the machine affects all equally. Ratios are taken within a round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import commit, machine, measure
from rich.console import Console
from rich.table import Table

import feedline

_HERE = Path(__file__).resolve().parent
_OUT = Console(highlight=False)


def write_boxes(source: Path, size: int, path: Path) -> None:
    """Returns the crop boxes of Feedline's epoch 0, for the program that only decodes."""
    dataset = feedline.open(source).random_resized_crop(size)
    lines = []
    for index in range(len(dataset)):
        left, top, width, height = (int(value) for value in dataset.draw(index)[0].values)
        lines.append(f"{left} {top} {width} {height} {source / dataset.key(index)}\n")
    path.write_text("".join(lines))


def decode_limit(program: Path, boxes: Path, threads: int, epochs: int) -> dict[str, Any]:
    printed = subprocess.run([program, boxes, str(threads), str(epochs)], capture_output=True, text=True, check=True)
    return {"kind": "limit", **json.loads(printed.stdout)}


def median(results: list[dict[str, Any]], name: str) -> float:
    return statistics.median(result[name] for result in results)


def spread(values: list[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def rounds(tasks: dict[str, Callable[[], dict[str, Any]]], count: int) -> dict[str, list[dict[str, Any]]]:
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in tasks}
    for i in range(count):
        for name in reversed(tasks) if i % 2 else tasks:
            _OUT.print(f"[dim]round {i + 1} of {count}: {name}[/]")
            results[name].append(tasks[name]())
    return results


def goals(results: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The record's configuration and measurements: ratios by round, and their medians."""

    def ratio(name: str, over: str, figure: str) -> list[float]:
        return [a[figure] / b[figure] for a, b in zip(results[name], results[over], strict=True)]

    speed = ratio("Feedline, folder", "stock DataLoader", "images_per_s")
    limit = ratio("Feedline, folder", "decoding alone", "images_per_s")
    memory = ratio("Feedline, folder", "stock DataLoader", "peak_bytes_above_bare")
    first = [result["first_batch_s"] for result in results["Feedline, tar"]]
    return [
        {"goal": "times the stock DataLoader", "at_least": 2.5, "measured": speed},
        {"goal": "share of decoding alone", "at_least": 0.6, "measured": limit},
        {"goal": "share of the stock loader's memory", "at_most": 1 / 3, "measured": memory},
        {"goal": "first batch of an indexed dataset, s", "at_most": 0.1, "measured": first},
    ]


def is_met(goal: dict[str, Any]) -> bool:
    value = statistics.median(goal["measured"])
    return bool(value >= goal["at_least"] if "at_least" in goal else value <= goal["at_most"])


def write_record(name: str, path: Path | None, started: float, record: dict[str, Any]) -> None:
    """Writes the measurements and the machine to `path` or bench/results/<date>-<commit>-<name>.json."""
    for goal in record["goals"]:
        goal.update(median=statistics.median(goal["measured"]), met=is_met(goal))
    known = {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime(started)),
        "machine": machine(),
    }
    if path is None:
        day = time.strftime("%Y-%m-%d")
        path = Path(__file__).resolve().parent / "results" / f"{day}-{known['commit'] or 'unknown'}-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"command": record.pop("command"), **known, **record}, indent=1) + "\n")
    _OUT.print(f"written to {path}")


def show(results: dict[str, list[dict[str, Any]]], reached: list[dict[str, Any]]) -> None:
    table = Table(title="Median of the rounds (lowest to highest)", title_justify="left")
    for column in ("loader", "images/s", "CPU-s per 1,000", "first batch, ms", "memory, MB", "mapped, MB"):
        table.add_column(column, justify="left" if column == "loader" else "right")
    for name, entries in results.items():
        table.add_row(
            name,
            spread([entry["images_per_s"] for entry in entries], ",.0f"),
            f"{median(entries, 'cpu_s_per_1000_images'):.2f}",
            f"{1000 * median(entries, 'first_batch_s'):.0f}" if "first_batch_s" in entries[0] else "",
            f"{median(entries, 'peak_bytes_above_bare') / 1e6:.0f}" if "peak_bytes_above_bare" in entries[0] else "",
            f"{median(entries, 'peak_pss_above_bare') / 1e6:.0f}" if "peak_pss_above_bare" in entries[0] else "",
        )
    _OUT.print(table)
    table = Table(title="Goals", title_justify="left")
    for column in ("goal", "asked", "measured", "met"):
        table.add_column(column, justify="left" if column == "goal" else "right")
    for goal in reached:
        asked = f"≥ {goal['at_least']:.2f}" if "at_least" in goal else f"≤ {goal['at_most']:.2f}"
        met = "[green]yes[/]" if is_met(goal) else "[red]no[/]"
        table.add_row(goal["goal"], asked, spread(goal["measured"], ".2f"), met)
    _OUT.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="class folders of JPEG files")
    parser.add_argument("tars", help="the same photos in tar files")
    parser.add_argument("--limit-program", type=Path, required=True, help="the compiled images/jpeg_limit.cpp")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2, help="timed epochs per measurement")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>.json")
    options = parser.parse_args()

    boxes = options.limit_program.parent / "boxes.txt"
    write_boxes(options.folder, 224, boxes)
    common = {"threads": options.threads, "epochs": options.epochs}
    folder, tars = str(options.folder), options.tars
    tasks = {
        "stock DataLoader": lambda: measure("loaders.py", "stock", folder, transforms="pillow", **common),
        "Feedline, folder": lambda: measure("loaders.py", "folder", folder, **common),
        "Feedline, tar": lambda: measure("loaders.py", "tar", tars, **common),
        "decoding alone": lambda: decode_limit(options.limit_program, boxes, options.threads, options.epochs),
    }
    feedline.open(tars)  # creates the index for "indexed dataset"
    started = time.time()
    results = rounds(tasks, options.rounds)
    reached = goals(results)
    show(results, reached)
    path = options.json or _HERE / "results" / f"{time.strftime('%Y-%m-%d')}-{commit() or 'unknown'}.json"
    record = {
        "command": "tools/bench " + " ".join(f"--{name}={value}" for name, value in common.items()),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime(started)),
        "machine": machine(),
        "images": sum(1 for _ in options.folder.rglob("*.jpg")),
        "results": results,
        "goals": [{**goal, "met": is_met(goal)} for goal in reached],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    _OUT.print(f"written to {path}")
    return 0 if all(is_met(goal) for goal in reached) else 1


if __name__ == "__main__":
    sys.exit(main())
