# SPDX-License-Identifier: Apache-2.0
"""Runs the experiments after the script has ended: in a copy of its process, on its disk, and on its device."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from feedline.diagnose.experiments import disk_probe, pinning, worker_sweep
from feedline.profiler import process_copies
from feedline.profiler.dataset_files import DatasetFiles
from feedline.profiler.experiments import Ceiling, Comparison, DatasetCopies, Experiments, Handing, Rung, keep
from feedline.profiler.intervals import rate_interval
from feedline.profiler.probe.events import STEP
from feedline.profiler.recordings import ProcessRecord, Recording

_GRACE_S = 5.0  # extra time beyond the budget
_PROBE_S, _PROBE_SHARE = 1.2, 0.25  # maximum share of the budget
_COPIES_S, _COPIES_SHARE = 20.0, 0.3  # same; most of it is the start of a process with torch
_CACHED, _FROM_DEVICE = 0.5, 0.3


def make_experiments(
    session: Path,
    recording: Recording,
    files: Sequence[Mapping[str, Any]],
    *,
    budget: float,
    tell: Callable[[str, float], None] = lambda _what, _left_s: None,
) -> Experiments:
    """Runs as many experiments as fit into `budget` seconds. Leaves no process running if an exception occurs.

    `session` is the run's folder; `files` describes the dataset's files, as returned by `_engine.look_at_files`. `tell`
    is called repeatedly with the current experiment and the remaining seconds.
    """
    until = time.monotonic() + budget
    cold, ceiling = read_from_disk(recording.host, recording.files), ceiling_of(recording.processes)
    tell("the disk", budget)
    disk = disk_probe.probe(files, min(_PROBE_S, _PROBE_SHARE * budget))
    tell("copies to the device", until - time.monotonic())
    to_device, no_copies = pinning.measure(recording.devices, min(_COPIES_S, _COPIES_SHARE * budget))
    step_s = 1 / ceiling.steps_per_s if ceiling is not None else 0.0
    found = _ask_the_copy(session, until - time.monotonic(), step_s, cold, tell)
    warm_because = [why for rung in found.get("rungs", []) if (why := rung.pop("warm_because", None))]
    return Experiments(
        keep([Rung(**rung) for rung in found.get("rungs", [])]),
        found.get("refused"),
        ceiling,
        [Comparison(**one) for one in [*found.get("comparisons", []), *to_device]],
        [*found.get("not_tried", []), *no_copies],
        disk,
        Handing(**found["handing"][0]) if found.get("handing") else None,
        cold and bool(found.get("rungs")) and not warm_because,
        next(iter(warm_because), None),
        DatasetCopies(**found["dataset"][0]) if found.get("dataset") else None,
    )


def read_from_disk(host: Mapping[str, Any], files: DatasetFiles | None) -> bool:
    """Whether most of the dataset's files were not in the page cache, and much of the data was read from disks."""
    if files is None or files.cached_before is None or files.cached_before > _CACHED:
        return False
    last = {row["pid"]: row for row in host.get("processes", [])}
    read, device = (sum(row[name] for row in last.values()) for name in ("read_bytes", "device_bytes"))
    return bool(device > _FROM_DEVICE * read)


def ceiling_of(processes: Sequence[ProcessRecord]) -> Ceiling | None:
    """Returns the maximum rate of the process whose steps take the most time."""
    steps = max(([e for e in p.events if e.kind == STEP] for p in processes), key=lambda s: sum(e.wall_ns for e in s))
    done, seconds = [(0.0, 0.0)], 0.0
    for step in steps:  # concatenated, as if the loop never waited for a batch
        seconds += step.wall_ns / 1e9
        done.append((seconds, 1.0))
    if len(done) < 3 or seconds <= 0:
        return None
    return Ceiling(*rate_interval(done), steps=len(steps))


def _ask_the_copy(
    session: Path, budget: float, step_s: float, cold: bool, tell: Callable[[str, float], None]
) -> dict[str, Any]:
    """Wakes the process copy of `session` and waits for its results."""
    try:
        pid = int((session / process_copies.PID).read_text())
    except (OSError, ValueError):
        return {"refused": "the script's process was not copied, so no measurements are possible"}
    unfinished = session / f"{worker_sweep.GO}.part"
    unfinished.write_text(f"{budget} {step_s} {int(cold)}")
    unfinished.replace(session / worker_sweep.GO)
    until = time.monotonic() + budget + _GRACE_S
    try:
        while time.monotonic() < until and _is_alive(pid):
            made = _read(session) or {}
            if made.get("finished"):
                break
            tell(made.get("trying", "the loader"), until - _GRACE_S - time.monotonic())
            time.sleep(0.05)
    finally:
        process_copies.end_the_copy(session)
    found = _read(session)
    if found is None:
        return {"refused": "the copy of the script's process exited or hung before it finished its measurements"}
    if not (found.get("rungs") or found.get("refused") or found.get("finished")):
        found["refused"] = f"no measurement finished within {budget:.0f} s"
    return found


def _read(session: Path) -> dict[str, Any] | None:
    try:
        value = json.loads((session / worker_sweep.RESULT).read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[-1].split()[0] not in "ZX"
