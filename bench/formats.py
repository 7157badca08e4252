# SPDX-License-Identifier: Apache-2.0
"""Measures the same photos in every format for photos, with Feedline and with the formats' own readers.

Feedline's loaders are in one process and run an epoch each in turn; each original reader runs in a separate process, in
its environment of format_peers.toml. A reader that cannot be installed is skipped with a message. Every second round
runs backwards; ratios are taken within a round. format_samples.cpp also measures the time per photo in each format,
alternating between a few photos of each, because epochs on shared cores are less comparable.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "peers"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import environments
import made_arrow
import made_litdata
import made_lmdb
import made_mds
import made_parquet
import made_tfrecords
from cold import epoch
from rich.console import Console
from rich.table import Table
from run import is_met, spread, write_record

import feedline

_OUT = Console(highlight=False, markup=False, width=120)
_HERE = Path(__file__).resolve().parent
_SHARDS = 4
_ORIGINALS = {
    "tfdata": "tf.data, TFRecord",
    "tfrecord": "tfrecord package, Pillow",
    "datasets": "datasets, Pillow",
    "streaming": "MosaicML streaming, Pillow",
    "litdata": "LitData, Pillow",
    "lmdb": "lmdb in torch's Dataset, Pillow",
}
# Measured in one process without workers and compared by CPU time, which is reliable also on busy cores.
_WITHOUT_WORKERS = dict(zip(list(_ORIGINALS.values())[3:], ("mds", "litdata", "lmdb"), strict=True))
_READER_S = 900  # much longer than two epochs of any reader

Results = dict[str, list[dict[str, Any]]]


def records_of(photos: Path, root: Path) -> list[Path]:
    """Writes the photos as TFRecord files, once, with the indexes that the `tfrecord` package requires."""
    if not (root / "made").exists():
        for path in made_tfrecords.of_folder(photos, root, _SHARDS):
            Path(f"{path}.tfindex").write_text(made_tfrecords.index_of(path))
        (root / "made").touch()
    return sorted(path for path in root.glob("train-*") if path.suffix != ".tfindex" and "feedline" not in path.suffix)


def tables_of(photos: Path, root: Path) -> dict[str, Path]:
    """Writes the photos once in each format that is stored as a folder."""
    makers: dict[str, Callable[[Path, Path], Any]] = {
        "arrow": lambda photos, root: made_arrow.of_folder(photos, root, _SHARDS),
        "parquet": lambda photos, root: made_parquet.of_folder(photos, root, _SHARDS),
        "mds": lambda photos, root: made_mds.of_folder(photos, root, _SHARDS),
        "litdata": lambda photos, root: made_litdata.of_folder(photos, root, _SHARDS),
        "lmdb": made_lmdb.of_folder,
    }
    for name, make in makers.items():
        if not (root / f"{name}.made").exists():
            make(photos, root / name)
            (root / f"{name}.made").touch()
    return {name: root / name for name in makers}


def loader_of(source: Any, threads: int) -> Any:
    dataset = (
        feedline.open(source)
        .random_resized_crop(224)
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    return dataset.loader(64, shuffle=True, drop_last=True, num_workers=threads, output="numpy")


def original(python: Path, reader: str, shards: list[Path], threads: int) -> dict[str, Any]:
    command = [python, _HERE / "format_readers.py", reader, *shards, "--threads", threads]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=_READER_S)
    if done.returncode != 0:
        raise environments.NotInstalled((done.stderr.strip().splitlines() or ["no message"])[-1])
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def originals(
    root: Path, sources: dict[str, list[Path]], threads: int, wanted: list[str]
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    for reader, peer in environments.peers(_HERE / "format_peers.toml").items():
        if reader not in wanted:
            continue
        name = _ORIGINALS[reader]
        workers = 0 if name in _WITHOUT_WORKERS else threads
        try:
            python = environments.ensure(peer, root)
            yield (
                name,
                lambda python=python, reader=reader, workers=workers: original(  # type: ignore[misc]
                    python, reader, sources[reader], workers
                ),
            )
        except environments.NotInstalled as error:
            _OUT.print(f"skipped: {name}: {error}")


def joined(source: Any) -> str:
    """Returns the argument of feedline.open as one word; a list is joined."""
    return "::".join(map(str, source)) if isinstance(source, list) else str(source)


def samples_in_turn(program: Path, sources: dict[str, Any], rounds: int) -> list[dict[str, Any]]:
    """Returns the CPU time per photo of each source, and its ratio to that of the first source, by round."""
    named = [f"{name}={joined(source)}" for name, source in sources.items()]
    done = subprocess.run([program, str(rounds), *named], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(tasks: dict[str, Callable[[], dict[str, Any]]], rounds: int) -> tuple[Results, dict[str, str]]:
    """Runs the rounds; an original reader that fails is omitted from all rounds, and the reason is printed."""
    results: Results = {name: [] for name in tasks}
    failed: dict[str, str] = {}
    for i in range(rounds):
        for name in reversed(tasks) if i % 2 else tasks:
            if name in failed:
                continue
            try:
                results[name].append(tasks[name]())
            except (environments.NotInstalled, subprocess.TimeoutExpired) as error:
                failed[name] = str(error)
    return {name: entries for name, entries in results.items() if name not in failed}, failed


def goals_of(results: Results) -> list[dict[str, Any]]:
    def ratio(one: str, other: str) -> list[float]:
        pairs = zip(results[one], results[other], strict=True)
        return [a["images_per_s"] / b["images_per_s"] for a, b in pairs]

    ours = "Feedline, tfrecord"

    def less_cpu(one: str, other: str) -> list[float]:
        pairs = zip(results[one], results[other], strict=True)
        return [b["cpu_s_per_1000_images"] / a["cpu_s_per_1000_images"] for a, b in pairs]

    asked = [(ours, "Feedline, tar", 0.95), (ours, "tf.data, TFRecord", 2), (ours, "tfrecord package, Pillow", 2)]
    for table in ("Feedline, arrow", "Feedline, parquet"):
        asked += [(table, "Feedline, tar", 0.95), (table, "datasets, Pillow", 4)]
    asked += [(f"Feedline, {name}", "Feedline, tar", 0.95) for name in _WITHOUT_WORKERS.values()]
    rates = [
        {"goal": f"{one} / {other}", "at_least": least, "measured": ratio(one, other)}
        for one, other, least in asked
        if other in results
    ]
    return rates + [
        {
            "goal": f"CPU time an image, {other} / Feedline, {name}",
            "at_least": 4,
            "measured": less_cpu(f"Feedline, {name}", other),
        }
        for other, name in _WITHOUT_WORKERS.items()
        if other in results
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="a folder of class folders")
    parser.add_argument("shards", help="the same photos in tar files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--originals", nargs="*", default=list(_ORIGINALS), choices=_ORIGINALS, help="default: all")
    parser.add_argument("--environments", type=Path, required=True, help="folder of the original readers' environments")
    parser.add_argument("--samples", type=Path, required=True, help="the compiled format_samples.cpp")
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-formats.json")
    options = parser.parse_args()
    started = time.time()
    records = records_of(options.photos, options.photos.parent / "bench_records")
    tables = tables_of(options.photos, options.photos.parent / "bench_tables")
    sources = {"tar": options.shards, "folder": options.photos, "tfrecord": records, **tables}
    in_turn = samples_in_turn(options.samples, sources, options.rounds)
    loaders = {name: loader_of(source, options.threads) for name, source in sources.items()}
    for loader in loaders.values():
        epoch(loader)  # warms the page cache
    tasks: dict[str, Callable[[], dict[str, Any]]] = {
        f"Feedline, {name}": lambda loader=loader: epoch(loader)  # type: ignore[misc]
        for name, loader in loaders.items()
    }
    tasks |= dict(
        originals(
            options.environments,
            {
                "tfdata": records,
                "tfrecord": records,
                "datasets": [tables["arrow"]],
                "streaming": [tables["mds"]],
                "litdata": [tables["litdata"]],
                "lmdb": [tables["lmdb"]],
            },
            options.threads,
            options.originals,
        )
    )
    results, failed = measure(tasks, options.rounds)
    for name, why in failed.items():
        _OUT.print(f"failed: {name}: {why}")
    goals = goals_of(results) + [
        {"goal": f"CPU time a photo in turn, tar / {one['name']}", "at_least": 0.95, "measured": one["ratios"]}
        for one in in_turn[1:]
    ]
    table = Table(title="Median of the rounds (lowest to highest)", title_justify="left")
    for column in ("reader", "images/s", "CPU us a photo, in turn"):
        table.add_column(column, justify="left" if column == "reader" else "right")
    costs = {f"Feedline, {one['name']}": spread(one["cpu_us_per_image"], ".0f") for one in in_turn}
    for name, entries in results.items():
        table.add_row(name, spread([entry["images_per_s"] for entry in entries], ",.0f"), costs.get(name, ""))
    _OUT.print(table)
    for goal in goals:
        met = "met" if is_met(goal) else "missed"
        _OUT.print(f"{goal['goal']}: at least {goal['at_least']:g}, {spread(goal['measured'], '.3g')}: {met}")
    command = f"tools/bench --formats --rounds {options.rounds} --threads {options.threads}"
    content = {"command": command, "results": results, "failed": failed, "in_turn": in_turn, "goals": goals}
    write_record("formats", options.json, started, content)
    return 0 if all(is_met(goal) for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
