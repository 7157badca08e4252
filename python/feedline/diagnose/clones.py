# SPDX-License-Identifier: Apache-2.0
"""A copy of the script's process, taken when its first loop begins, that tries settings after the script has ended.

The copy is a fork: it has the script's loader, with its data set, sampler and collate function, and nothing of it has
to be made anew or pickled. Until the script has ended it sleeps, without the script's pipes, sockets and standard
streams, in a session of its own and as nobody's child, so that the script neither waits for it nor hears of it. It
reads samples and never runs anything else of the script.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from feedline.diagnose import other_workers
from feedline.diagnose.recorder import Recorder

BUDGET = "FEEDLINE_DIAGNOSE_BUDGET"
WATCHER, GO, RESULT, PID = "watcher", "experiments.go", "experiments.json", "experiments.pid"
_LOOK_S = 0.2
_RUNG_S = 2.5
_BLOCKS = 8  # of batches, whose rates give the interval
_MOST_WORKERS = 16
_T_95 = {
    1: 12.71,
    2: 4.30,
    3: 3.18,
    4: 2.78,
    5: 2.57,
    6: 2.45,
    7: 2.36,
}  # Student's t, two-sided, by degrees of freedom


def offer(loader: Any, recorder: Recorder) -> None:
    """Called before a loop begins; the first loader that can be tried again is copied. Never raises."""
    try:
        budget = float(os.environ.get(BUDGET) or 0)
        if budget <= 0 or recorder.cloned:
            return
        refused = _refusal(loader)
        if refused is not None:
            recorder.note(f"no experiments: {refused}")
            recorder.cloned = True
            return
        if not _claim(recorder.session):  # another process of the run was first
            recorder.cloned = True
            return
        recorder.cloned = True
        _fork(loader, recorder, budget)
    except Exception as error:
        recorder.note(f"no experiments: the script's process could not be copied: {error!r}")


def _refusal(loader: Any) -> str | None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "the script uses a GPU, which a copied process cannot"
    return None if other_workers.can_be_made_again(loader) else "this loader has no data set to read again"


def _claim(session: Path) -> bool:
    try:
        os.close(os.open(session / "experiments.claim", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


def _fork(loader: Any, recorder: Recorder, budget: float) -> None:
    with warnings.catch_warnings():  # threads: the copy takes no lock of theirs that a worker would not take
        warnings.simplefilter("ignore")
        first = os.fork()
        if first > 0:
            os.waitpid(first, 0)
            return
    try:
        os.setsid()
        if os.fork() == 0:
            _live(loader, recorder, budget)
    finally:
        os._exit(0)


def _live(loader: Any, recorder: Recorder, budget: float) -> None:
    try:
        recorder.silent = True
        for name in ("FEEDLINE_DIAGNOSE_SESSION", BUDGET):  # what this process starts is nobody's to watch
            os.environ.pop(name, None)
        _let_go()
        session = recorder.session
        (session / PID).write_text(str(os.getpid()))
        watcher = Path("/proc", (session / WATCHER).read_text())
        while not (session / GO).exists():
            if not watcher.exists():
                return
            time.sleep(_LOOK_S)
        climb(loader, budget, session / RESULT)
    except BaseException:
        _write(recorder.session / RESULT, {"rungs": [], "refused": traceback.format_exc(limit=-1).splitlines()[-1]})


def _let_go() -> None:
    """Of standard streams, pipes and sockets, whose other ends must see the script close them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in os.listdir("/proc/self/fd"):
        file = int(number)
        try:
            mode = os.fstat(file).st_mode
            if file > 2 and (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)):
                os.dup2(nothing, file)  # not closed: its number must not become another file's
        except OSError:
            continue
    for file in (0, 1, 2):
        os.dup2(nothing, file)


def climb(loader: Any, budget: float, result: Path) -> None:
    """Measures the loader alone with one number of workers after the other; writes `result` after each."""
    cpus = len(os.sched_getaffinity(0))
    own = other_workers.workers_of(loader)
    least = other_workers.fewest(loader)
    ladder = sorted({0, 1, 2, 4, cpus, own} & set(range(least, max(2 * cpus, own, 1) + 1)))[:8]
    ladder = [workers for workers in ladder if workers <= _MOST_WORKERS]
    until = time.monotonic() + budget
    rungs: list[dict[str, Any]] = []
    refused = None
    for position, workers in enumerate(ladder):
        seconds = min(_RUNG_S, (until - time.monotonic()) / (len(ladder) - position))
        if seconds < 0.2:
            refused = None if rungs else "the budget is too small for a measurement"
            break
        rungs.append(measure(other_workers.with_workers(loader, workers), workers, seconds))
        _write(result, {"rungs": rungs, "refused": None, "finished": False})
    _write(result, {"rungs": rungs, "refused": refused, "finished": True})


def measure(loader: Any, workers: int, seconds: float) -> dict[str, Any]:
    """Batches per second once all workers are at it, with a 95 % interval from the rates of blocks of batches."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    for _ in _endless(loader):
        now = time.perf_counter()
        times.append(now)
        if len(times) == workers + 1:  # the first of each worker: they have all begun
            until = max(until, now + seconds / 2)
        if now > until and len(times) > workers + 3:
            break
    steady = times[workers:]
    mean = (len(steady) - 1) / max(steady[-1] - steady[0], 1e-9)
    blocks = min(_BLOCKS, (len(steady) - 1) // 2)
    low = high = mean
    if blocks >= 2:
        size = (len(steady) - 1) // blocks
        rates = [size / max(steady[(i + 1) * size] - steady[i * size], 1e-9) for i in range(blocks)]
        centre = sum(rates) / blocks
        spread = (sum((rate - centre) ** 2 for rate in rates) / (blocks - 1)) ** 0.5
        half = _T_95[blocks - 1] * spread / blocks**0.5
        low, high = max(mean - half, 0.0), mean + half
    return {"workers": workers, "batches_per_s": mean, "low": low, "high": high, "batches": len(steady) - 1}


def _endless(loader: Any) -> Iterator[Any]:
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            raise ValueError("the loader gives no batches a second time")


def _write(path: Path, value: dict[str, Any]) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(value))
    unfinished.replace(path)
