# SPDX-License-Identifier: Apache-2.0
"""`tools/bench --peers`: compares Feedline with its peers and with the machine's limits.

Every measurement is a fresh process in the peer's own environment; the rounds are interleaved and every second one runs
backwards. Ratios are taken within a round. Writes a record in JSON, and the tables in Markdown to the same folder.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import environments
import launch
import report
import rounds
import tasks
from bars import BARS, ELSEWHERE, evaluate
from launch import Skipped
from limits import Programs
from measure import commit, machine
from paths import Paths
from run import write_record
from work import Work

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_RUN_S = 240  # the slowest loader, including writing its files, takes less than 60


def pythons(chosen: list[tasks.Task], root: Path, tell: Callable[[str], None]) -> dict[str, Path | str]:
    """Returns the interpreter of each required environment, or the reason as text if it is unavailable."""
    known = environments.peers()
    found: dict[str, Path | str] = {tasks.OWN: Path(sys.executable)}
    for name in dict.fromkeys(loader.environment for task in chosen for loader in task.loaders):
        if name in found:
            continue
        tell(f"environment of {name}")
        try:
            found[name] = environments.ensure(known[name], root)
        except environments.NotInstalled as error:
            found[name] = f"not installed: {error}"
            tell(str(found[name]))
    return found


def _loader(
    task: tasks.Task, loader: tasks.Loader, python: Path | str, paths: Paths, options: argparse.Namespace
) -> dict[str, Any]:
    if isinstance(python, str):
        raise Skipped(python)
    work = Work(
        transform=task.transform,
        dtype=task.dtype,
        variant=loader.variant,
        folder=str(paths.photos[task.data]),
        tars=paths.tars,
        made=str(paths.made),
        batch=task.batch,
        threads=options.threads,
        epochs=task.quick_epochs if options.quick else task.epochs,
        step_s=task.step_s,
    )
    name = f"{task.name}-{loader.name}".replace(" ", "_").replace(",", "")
    sheet = paths.sheets / f"{name}.npy" if paths.sheets else None
    log = paths.environments / "log" / f"{name}.log"
    figures = launch.run(python, loader.adapter, work.to_json(), log=log, timeout_s=_RUN_S, sheet=sheet)
    if wrong := work.wrong(figures["first_batch"], figures["samples_of_an_epoch"]):
        raise Skipped(wrong)
    return figures


def measurements(
    chosen: list[tasks.Task], paths: Paths, options: argparse.Namespace, tell: Callable[[str], None]
) -> dict[rounds.Key, Callable[[], dict[str, Any]]]:
    found = pythons(chosen, paths.environments, tell)
    programs = Programs(paths.programs, paths.photos, paths.made, 1 if options.quick else 2)
    todo: dict[rounds.Key, Callable[[], dict[str, Any]]] = {}
    for task in chosen:
        for loader in task.loaders:
            todo[task.name, loader.name] = functools.partial(
                _loader, task, loader, found[loader.environment], paths, options
            )
        for limit in task.limits:
            todo[task.name, limit] = functools.partial(programs.run, limit, task.data)
    return todo


def bar_records(chosen: list[tasks.Task], measured: rounds.Measured) -> list[dict[str, Any]]:
    peers = {task.name: [loader.name for loader in task.loaders if not loader.ours] for task in chosen}
    return [evaluate(bar, measured, peers[bar.task]) for bar in BARS if bar.task in peers]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="only these tasks, environments or loaders"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round of one timed epoch")
    parser.add_argument("--threads", type=int, default=2, help="threads or workers per loader")
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-peers.json")
    parser.add_argument(
        "--data", type=Path, default=_ROOT / "demo", help="folder with bench_photos, bench_shards and bench_large"
    )
    parser.add_argument("--environments", type=Path, default=_ROOT / "build" / "peers")
    parser.add_argument("--programs", type=Path, default=_ROOT / "build" / "bench" / "bench")
    parser.add_argument("--sheets", type=Path, help="save 16 images of each loader as an array in this folder")
    return parser.parse_args()


def record_of(measured: rounds.Measured, skipped: dict[rounds.Key, str], bars: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the record without the machine: all rounds of all loaders, skipped loaders with reasons, and goals."""
    return {
        "skipped": {f"{task}, {name}": reason for (task, name), reason in skipped.items()},
        "not_measured": [bar["goal"] for bar in bars if not bar["measured"]],
        "elsewhere": ELSEWHERE,
        "results": {f"{task}, {name}": entries for (task, name), entries in measured.items()},
        "goals": [bar for bar in bars if bar["measured"]],
    }


def compare(chosen: list[tasks.Task], options: argparse.Namespace, tell: Callable[[str], None]) -> bool:
    """Measures, prints and records; returns whether every goal is met."""
    count = 1 if options.quick else options.rounds
    paths = Paths.of(options.data, options.environments, options.programs, options.sheets)
    todo = measurements(chosen, paths, options, tell)
    paths.warm()
    started = time.time()
    measured, skipped = rounds.run(todo, count, tell)
    bars = bar_records(chosen, measured)
    path = options.json or _HERE.parent / "results" / f"{time.strftime('%Y-%m-%d')}-{commit() or 'unknown'}-peers.json"
    tables = [
        report.bars_table(bars, {} if options.only else ELSEWHERE),
        *filter(None, (report.task_table(task, measured) for task in chosen)),
        report.skipped_list(skipped),
    ]
    heading, text = report.heading(started, count, commit(), machine()), "\n\n".join(tables)
    print(f"\n{heading}.\n\n{text}\n")
    took = {"rounds": count, "seconds": round(time.time() - started)}
    write_record("peers", path, started, {"command": _command(options), **took, **record_of(measured, skipped, bars)})
    path.with_suffix(".md").write_text(f"{heading}; [record]({path.name}).\n\n{text}\n")
    return all(bar["measured"] and report.is_met(bar) for bar in bars)


def _command(options: argparse.Namespace) -> str:
    """Returns the configuration without this machine's paths."""
    rounds = "--quick" if options.quick else f"--rounds {options.rounds}"
    only = ["--only", *options.only] if options.only else []
    return " ".join(["tools/bench --peers", rounds, f"--threads {options.threads}", *only])


def main() -> int:
    options = arguments()
    try:
        chosen = tasks.chosen(options.only)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if compare(chosen, options, functools.partial(print, flush=True)) else 1


if __name__ == "__main__":
    sys.exit(main())
