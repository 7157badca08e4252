# SPDX-License-Identifier: Apache-2.0
"""A copy of the script's process, forked when its first loop starts, which tries settings after the script has ended.

The copy sleeps until the script has ended. The copy reads samples but never runs any other code of the script. The
probe loads this module into the script's processes if experiments are planned.
"""

from __future__ import annotations

import functools
import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from feedline.diagnose.experiments import cold_files, handover, loader_rates, other_workers
from feedline.machine import limits
from feedline.profiler import dataset_copies, isolated, process_copies
from feedline.profiler.isolated import NotTried
from feedline.profiler.probe.opened_files import OpenedFiles
from feedline.profiler.probe.recorder import Recorder
from feedline.profiler.summary.figures import DROP_IN
from feedline.profiler.variables import EXTENSION, SESSION

CLAIM, GO, RESULT = "experiments.claim", "experiments.go", "experiments.json"  # files in a session's folder
_LOOK_S = 0.2
_RUNG_S, _SHORTEST_S = 2.5, 0.2
_COMPARISON_S, _SHORTEST_COMPARISON_S = 6.0, 1.0
_HANDING_S, _HANDING_SHARE = 0.5, 0.05
_DATASET_S, _DATASET_SHARE = 1.0, 0.05
_LADDER_SHARE = 0.6  # share of the budget; the rest is for single changes
# Limits of an attempt: workers may take long to start, and a stuck attempt must leave time for others.
_START_S, _LEAST_LIMIT_S, _SHARE_OF_REST = 15.0, 5.0, 0.5
_MOST_WORKERS = 16
_SEED = 0
_SAME = 1.05  # ratio of rates that count as equal


def install(_module: Any, recorder: Recorder) -> None:
    """Called by the probe with each module that has a loader."""
    recorder.offer = functools.partial(offer, recorder=recorder)


def offer(loader: Any, recorder: Recorder) -> bool:
    """Called before a loop starts. Copies the process if this is the first loader that supports several iterations.

    Returns whether the process was copied. Never raises.
    """
    try:
        if recorder.copied:
            return False
        recorder.copied = True
        refused = process_copies.refusal(loader)
        if refused is not None:
            recorder.note(f"no settings were tried on a copy of the script's process: {refused}")
            return False
        if not process_copies.claim(recorder.session / CLAIM):  # another process of the run was first
            return False
        process_copies.fork_away(lambda: _live(loader, recorder))
    except Exception as error:
        recorder.note(f"no settings were tried, because the script's process could not be copied: {error!r}")
        return False
    return True


def _live(loader: Any, recorder: Recorder) -> None:
    try:
        recorder.silent = True
        for name in (SESSION, EXTENSION):  # do not watch the processes that this one starts
            os.environ.pop(name, None)
        process_copies.let_go()
        session = recorder.session
        (session / process_copies.PID).write_text(str(os.getpid()))
        watcher = Path("/proc", (session / process_copies.WATCHER).read_text())
        while not (session / GO).exists():
            if not watcher.exists():
                return
            time.sleep(_LOOK_S)
        budget, step_s, cold = (float(word) for word in (session / GO).read_text().split())
        sweep(loader, budget, session / RESULT, step_s, recorder.opened, cold > 0)
    except BaseException:
        _write(recorder.session / RESULT, {"rungs": [], "refused": traceback.format_exc(limit=-1).splitlines()[-1]})


def sweep(loader: Any, budget: float, result: Path, step_s: float, opened: OpenedFiles, cold: bool = False) -> None:
    """Runs as many experiments as fit into `budget` seconds, and writes `result` after each.

    `cold`: whether to evict the dataset's files from the page cache while worker counts are measured.
    """
    until = time.monotonic() + budget
    results = ("rungs", "comparisons", "handing", "dataset", "not_tried")
    found: dict[str, Any] = {**{name: [] for name in results}, "refused": None}
    ladder, climbed_until = _ladder(loader), until - (1 - _LADDER_SHARE) * budget
    for position, workers in enumerate(ladder):
        seconds = min(_RUNG_S, (climbed_until - time.monotonic()) / (len(ladder) - position))
        if seconds < _SHORTEST_S:
            found["refused"] = None if found["rungs"] else "the budget is too small for a measurement"
            break
        attempt = functools.partial(_rung, loader, workers, seconds, opened, cold)
        _try(f"num_workers={workers}", attempt, seconds, climbed_until, result, found, "rungs")
    if not found["rungs"] and found["not_tried"]:
        found["refused"] = found["not_tried"][0]["why"]  # of the fewest workers: with more, torch wraps the error
        found["not_tried"] = []
    if found["rungs"]:
        if max(ladder) > 0 and not other_workers.is_feedlines(loader):
            seconds = min(_HANDING_S, _HANDING_SHARE * budget)
            _try("handing over", lambda: handover.measure(loader, seconds), seconds, until, result, found, "handing")
            seconds = min(_DATASET_S, _DATASET_SHARE * budget)
            pickled = functools.partial(_dataset_copies, loader, seconds)
            _try("memory of the dataset's copies", pickled, seconds, until, result, found, "dataset")
        best = _fewest_good_workers(found["rungs"])
        _compare(loader, best, until, result, found, step_s, opened)
    _write(result, {**found, "finished": True})


def _the_same_samples_again() -> None:
    """Seeds the global random generators so that every measurement reads the samples in the same order.

    Differences between samples then do not affect the comparison.
    """
    random.seed(_SEED)
    for name, seed in (("torch", "manual_seed"), ("numpy.random", "seed")):
        if name in sys.modules:
            getattr(sys.modules[name], seed)(_SEED)


def _rung(loader: Any, workers: int, seconds: float, opened: OpenedFiles, cold: bool) -> dict[str, Any]:
    _the_same_samples_again()
    files = cold_files.listen(opened, cold)
    if files is not None:
        files.drop_open()
    found = loader_rates.rate(other_workers.with_workers(loader, workers), workers, seconds)
    return {**found, "warm_because": None if files is None else files.warm_because}


def _dataset_copies(loader: Any, seconds: float) -> dict[str, Any]:
    found = dataset_copies.pickled_size(loader.dataset, seconds)
    if found["bytes"] is None:
        raise NotTried(f"its objects cannot be counted: {found['why']}")
    return {"bytes": found["bytes"], "whole": found["whole"]}


def _try(
    change: str,
    attempt: Callable[[], dict[str, Any]],
    seconds: float,
    until: float,
    result: Path,
    found: dict[str, Any],
    where: str,
) -> None:
    """Appends the result of `attempt` to `found[where]`, or the reason for its failure to `found["not_tried"]`."""
    limit = min(max(4 * seconds, _START_S), _SHARE_OF_REST * (until - time.monotonic()))
    limit = max(limit, 2 * seconds, _LEAST_LIMIT_S)
    _write(result, {**found, "trying": change})
    try:
        found[where].append(isolated.make(attempt, limit, result.with_suffix(".attempt")))
    except NotTried as error:
        found["not_tried"].append({"change": change, "why": str(error)})
    _write(result, found)


def _ladder(loader: Any) -> list[int]:
    cpus, own = limits.share_of_cpus(), other_workers.workers_of(loader)
    least = other_workers.fewest(loader)
    ladder = sorted({0, 1, 2, 4, cpus, own} & set(range(least, max(2 * cpus, own, 1) + 1)))[:8]
    return [workers for workers in ladder if workers <= _MOST_WORKERS]


def _fewest_good_workers(measured: list[dict[str, Any]]) -> int:
    best = max(rung["batches_per_s"] for rung in measured)
    return min(int(rung["workers"]) for rung in measured if rung["batches_per_s"] > best / _SAME)


def _compare(
    loader: Any, best: int, until: float, result: Path, found: dict[str, Any], step_s: float, opened: OpenedFiles
) -> None:
    """Compares one change at a time, with the best number of workers found."""
    if other_workers.is_feedlines(loader):
        found["not_tried"].append(
            {"change": "prefetching, persistence", "why": "this setting does not apply to Feedline's threads"}
        )
        return
    own, more = int(loader.num_workers), 2 * (loader.prefetch_factor or 2)
    workers = max(own, best, 1)
    tries: dict[str, Callable[[float], dict[str, Any]]] = {
        DROP_IN: lambda seconds: loader_rates.drop_in(loader, own, seconds),
        "files in the page cache": lambda seconds: loader_rates.cold_and_warm(loader, workers, opened, seconds),
        f"prefetch_factor={more}": lambda seconds: loader_rates.prefetching(loader, workers, more, seconds, step_s),
    }
    if own > 0 and not loader.persistent_workers:
        tries["persistent_workers=True"] = lambda seconds: loader_rates.persisting(
            loader, own, time.monotonic() + seconds
        )
    for position, (change, attempt) in enumerate(tries.items()):
        seconds = min(_COMPARISON_S, (until - time.monotonic()) / (len(tries) - position))
        if seconds < _SHORTEST_COMPARISON_S:
            found["not_tried"].append({"change": change, "why": "no time is left in the budget"})
            _write(result, found)
        else:
            made = functools.partial(attempt, seconds)
            _try(change, made, seconds, until, result, found, "comparisons")


def _write(path: Path, value: dict[str, Any]) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(value))
    unfinished.replace(path)
