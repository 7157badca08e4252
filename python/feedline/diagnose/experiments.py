# SPDX-License-Identifier: Apache-2.0
"""The ladder of workers on a copy of the script's loader, after the script has ended; clones.py has the copy."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from feedline.diagnose import clones

_GRACE_S = 5.0  # beyond the budget
_GAIN = 1.05  # a rung is kept that is so much better than all below


@dataclass(frozen=True)
class Rung:
    """The loader alone, without the loop's work, with so many workers."""

    workers: int
    batches_per_s: float
    low: float  # 95 % interval
    high: float
    batches: int
    kept: bool = False  # gains over the rungs below


@dataclass(frozen=True)
class Experiments:
    rungs: list[Rung] = field(default_factory=list)
    refused: str | None = None  # why there are none

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def rates(self) -> dict[int, float]:
        """Batches per second by workers."""
        return {rung.workers: rung.batches_per_s for rung in self.rungs}

    def lines(self, predicted: Mapping[int, float | None]) -> list[str]:
        """For a terminal; `predicted`: batches per second of the model, by workers."""
        if not self.rungs:
            return [f"  no experiments: {self.refused}"]
        lines = ["  measured: the loader alone, by workers (batches/s, 95 % interval, the model's prediction)"]
        for rung in self.rungs:
            kept = "" if rung.kept else "   gains nothing"
            model = predicted.get(rung.workers)
            lines.append(
                f"    {rung.workers:>3}  {rung.batches_per_s:8.1f}  [{rung.low:.1f}, {rung.high:.1f}]"
                f"  {'' if model is None else format(model, '.1f'):>8}{kept}"
            )
        return lines


def run(session: Path, budget: float) -> Experiments | None:
    """Wakes the copy in `session` and waits for what it measures; None: there is no copy, and a note says why."""
    try:
        pid = int((session / clones.PID).read_text())
    except (OSError, ValueError):
        return None
    (session / clones.GO).touch()
    until = time.monotonic() + budget + _GRACE_S
    try:
        while time.monotonic() < until and _is_alive(pid):
            if (_read(session) or {}).get("finished"):
                break
            time.sleep(0.05)
    finally:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)  # it leads a session: its workers go with it
    found = _read(session)
    if found is None:
        return Experiments(refused="the copy of the script's process ended, or got stuck, before it had measured")
    return Experiments(keep([Rung(**rung) for rung in found["rungs"]]), found.get("refused"))


def keep(rungs: list[Rung]) -> list[Rung]:
    """The same rungs; those are kept whose interval lies above the best so far."""
    best = 0.0
    judged = []
    for rung in sorted(rungs, key=lambda rung: rung.workers):
        gains = best == 0.0 or (rung.low > best and rung.batches_per_s > _GAIN * best)
        judged.append(Rung(**{**asdict(rung), "kept": gains}))
        if gains:
            best = rung.batches_per_s
    return judged


def _read(session: Path) -> dict[str, Any] | None:
    try:
        value = json.loads((session / clones.RESULT).read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[-1].split()[0] not in "ZX"
