# SPDX-License-Identifier: Apache-2.0
"""The tour of `tools/demo`: measures the stock DataLoader and Feedline on the same photos, trains, and
writes the results to a file.

Needs `bench` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import measure
import pack
import training
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import feedline

_OUT = Console(highlight=False)
_LABELS = {"stock": "stock DataLoader", "folder": "Feedline, folder", "tar": "Feedline, tar"}
BATCH_SIZE = 64


def measure_loaders(folder: Path, shards: str, epochs: int, threads: int, bar: Progress) -> list[dict[str, Any]]:
    rows = []
    task = bar.add_task("measuring", total=len(_LABELS))
    for kind, label in _LABELS.items():
        bar.update(task, description=f"measuring: {label}")
        source = shards if kind == "tar" else str(folder)
        result = measure.measure("loaders.py", kind, source, epochs=epochs, threads=threads, batch_size=BATCH_SIZE)
        rows.append({"label": label, **result})
        bar.advance(task)
    return rows


def train(folder: Path, epochs: int, bar: Progress) -> list[dict[str, Any]]:
    task = bar.add_task("training", total=None)

    def step(epoch: int, batches: int, loss: float) -> None:
        bar.update(
            task, total=batches * epochs, description=f"training: epoch {epoch + 1} of {epochs}, loss {loss:.2f}"
        )
        bar.advance(task)

    return training.train(folder, epochs, step)


def show(record: dict[str, Any]) -> None:
    table = Table(
        title=f"{record['images']:,} photos, batches of {record['batch_size']}, {record['threads']} threads or workers"
    )
    for column in ("loader", "images/s", "CPU-s per 1,000 images", "first batch", "peak memory"):
        table.add_column(column, justify="left" if column == "loader" else "right")
    for row in record["loaders"]:
        table.add_row(
            row["label"] + (f" ({row['transforms']})" if row["kind"] == "stock" else ""),
            f"{row['images_per_s']:,.0f}",
            f"{row['cpu_s_per_1000_images']:.2f}",
            f"{1000 * row['first_batch_s']:.0f} ms",
            f"{row['peak_bytes_above_bare'] / 1e6:.0f} MB",
        )
    _OUT.print(table)
    _OUT.print(f"Feedline: [bold]{record['speed_up']:.1f} times[/] the stock DataLoader's images per second")
    for entry in record["training"]:
        _OUT.print(
            f"epoch {entry['epoch']}: loss {entry['loss']:.3f}, {entry['seconds']:.1f} s, "
            f"of which {entry['waited_s']:.2f} s waiting for data"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="where photos/ lies, and everything else goes")
    parser.add_argument("--quick", action="store_true", help="one timed epoch instead of three")
    options = parser.parse_args()
    out: Path = options.out
    folder, epochs = out / "photos", 1 if options.quick else 3
    threads = len(os.sched_getaffinity(0))
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=_OUT) as bar:
        task = bar.add_task("packing tars", total=1)
        shards = pack.pack(folder, out / "shards")
        dataset = feedline.open(shards)  # writes the indexes
        bar.advance(task)
        rows = measure_loaders(folder, shards, epochs, threads, bar)
        history = train(folder, 2, bar)
    record = {
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": measure.commit(),
        "machine": measure.machine(),
        "images": len(dataset),
        "classes": len(list(folder.iterdir())),
        "batch_size": BATCH_SIZE,
        "threads": threads,
        "epochs": epochs,
        "stock_transforms": rows[0]["transforms"],
        "loaders": rows,
        "speed_up": rows[1]["images_per_s"] / rows[0]["images_per_s"],
        "training_side": training.SIDE,
        "training": history,
    }
    (out / "results.json").write_text(json.dumps(record, indent=1) + "\n")
    show(record)
    _OUT.print(f"as JSON: {out / 'results.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
