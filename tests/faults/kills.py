# SPDX-License-Identifier: Apache-2.0
"""Kills jobs and a resumed training run with SIGKILL at random times."""

from __future__ import annotations

import random
import statistics
import sys
import time
from pathlib import Path

from .children import Children
from .jobs import Job
from .walk import Reference, Walk, begin, judged, reference

_MOST_IN_A_ROW = 3  # kills of one job before it may end
_MOST_STEPS = 40  # of the training run


def kill(jobs: list[Job], children: Children, source: Path, count: int, until: float, seed: int, found: Walk) -> int:
    """Kills jobs in turn. After one to three kills, the job runs to its end. Returns the number of kills."""
    moments = random.Random(seed)
    known = [(job, *timed) for job in jobs if (timed := _timed(job, children, source, found)) is not None]
    kills = 0
    while kills < count and time.monotonic() < until:
        for job, expected, seconds in known:
            begin(job, source, children)
            for _ in range(moments.randint(1, _MOST_IN_A_ROW)):
                after = moments.uniform(0, 1.1 * seconds)
                run = children.run(lambda job=job: job.run(source, children.root), kill_after=after)
                kills += run.status == -9
                if run.status != -9:
                    break
            shown = f"{job.name}, killed after {after:.3f} s (kill {kills})"
            if run.status not in (0, -9):
                found.complaints.append(f"{shown}: ends with {run.status}: {run.output[-400:]}")
            for complaint in judged(job, children, source, run, None, expected, found):
                found.complaints.append(f"{shown}: {complaint}")
            if kills >= count or time.monotonic() > until:
                break
    return kills


def _timed(job: Job, children: Children, source: Path, found: Walk) -> tuple[Reference, float] | None:
    """Returns the job's result without faults, and the median of its seconds."""
    expected = reference(job, children, source, found)
    if expected is None:
        return None
    times = []
    for _ in range(3):
        begin(job, source, children)
        begun = time.monotonic()
        children.run(lambda: job.run(source, children.root))
        times.append(time.monotonic() - begun)
    return expected, statistics.median(times)


def kill_training(children: Children, folder: Path, count: int, until: float, seed: int, found: Walk) -> int:
    """Kills a run of three loaders that resumes from its last saved states, and compares all its steps with those of an
    undisturbed run. Returns the number of kills.
    """
    import killed_run

    moments = random.Random(seed)
    folder.mkdir()
    children.run(lambda: str(killed_run.make_data(folder)))
    whole, log = folder / "whole.log", folder / "killed.log"
    _train(children, folder, whole, 1, _MOST_STEPS)
    expected = {line["step"]: line["digest"] for line in killed_run.complete_lines(whole)}
    kills = 0
    while kills < count and time.monotonic() < until:
        log.unlink(missing_ok=True)
        while time.monotonic() < until:
            run = _train(children, folder, log, 1 + kills % 4, _MOST_STEPS, kill_after=moments.uniform(0, 0.5))
            kills += run.status == -9
            if run.status != -9:
                lost = expected.keys() - {line["step"] for line in killed_run.complete_lines(log)}
                if run.status:
                    found.complaints.append(f"training after {kills} kills ends with {run.status}: {run.output[-400:]}")
                elif lost:
                    found.complaints.append(f"training after {kills} kills lacks steps {sorted(lost)[:5]}")
                break
        lines = killed_run.complete_lines(log)
        wrong = [line["step"] for line in lines if line["digest"] != expected.get(line["step"])]
        if wrong:
            found.complaints.append(f"training after {kills} kills: steps {wrong[:5]} differ from an undisturbed run")
    return kills


def _train(children: Children, data: Path, log: Path, threads: int, steps: int, kill_after: float | None = None):  # type: ignore[no-untyped-def]
    def run() -> str:
        import killed_run

        sys.argv = ["killed_run", str(data), str(log), "--threads", str(threads), "--until", str(steps)]
        if status := killed_run.main():
            raise SystemExit(status)
        return ""

    return children.run(run, kill_after=kill_after)
