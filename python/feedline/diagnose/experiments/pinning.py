# SPDX-License-Identifier: Apache-2.0
"""Measures the gain of page-locked memory and non_blocking=True on the run's device, for copies like those in the
run.

The experiment runs in a separate process (copy_probe.py) after the script has ended, because the copy of the script's
process must not use the device. Therefore the script's streams, allocators and exit are unaffected.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from feedline.diagnose.experiments import copy_probe, loader_rates
from feedline.profiler.experiments import ASKED, LOCKED
from feedline.profiler.isolated import NotTried

_PROGRAM = Path(copy_probe.__file__)
_MEASURED_S = 1.0
_LEAST_S = 4.0  # to start a process with torch and a GPU


def measure(devices: Sequence[Mapping[str, Any]], limit_s: float) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Returns (comparisons, reasons why other comparisons were not tried) for the process that copied most per step.

    The experiment takes at most `limit_s` seconds. `devices` are the devices reported by the processes. Runs nothing if
    no copy could benefit.
    """
    facts = max(devices, key=lambda facts: sum(facts.get("batch_bytes", ())), default={})
    if not facts.get("batch_bytes") or facts.get("copied_well"):
        return [], []
    try:
        if not facts.get("python"):
            raise NotTried("the path of the script's Python is unknown")
        if limit_s < _LEAST_S:
            raise NotTried("the budget is too small to start a process that uses the GPU")
        return _comparisons(_run(facts, limit_s)), []
    except NotTried as error:
        return [], [{"change": f"{LOCKED}, {ASKED}", "why": str(error)}]


def _run(facts: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
    wanted = {"device": facts["device"], "sizes": facts["batch_bytes"], "seconds": _MEASURED_S}
    environment = dict(os.environ)
    if facts.get("visible") is not None:  # the script may have set the option itself
        environment["CUDA_VISIBLE_DEVICES"] = facts["visible"]
    command = [facts["python"], "-P", str(_PROGRAM), json.dumps(wanted)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s, env=environment
        )
        answer = json.loads(done.stdout.splitlines()[-1])
        found: dict[str, Any] = {name: answer.get(name) for name in ("why", "bytes", "page_locking", *copy_probe.WAYS)}
    except subprocess.TimeoutExpired:
        raise NotTried(f"timing copies to {facts['device']} took longer than {limit_s:.0f} s") from None
    except OSError as error:
        raise NotTried(f"{facts['python']} could not be started again: {error.strerror}") from None
    except (ValueError, IndexError, AttributeError):
        raise NotTried(
            f"the process that timed copies to {facts['device']} exited with status {done.returncode}"
        ) from None
    if found["why"]:
        raise NotTried(f"copies to {facts['device']} failed in a separate process: {found['why']}")
    return found


def _comparisons(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compares the stream's time with and without page-locking, then the loop's time with and without
    non_blocking=True.
    """
    (pageable, _), (_, waited), (locked, asked) = (zip(*found[way], strict=True) for way in copy_probe.WAYS)
    size = f"{found['bytes'] / 1e6:.3g} MB"
    locking = loader_rates.comparison(LOCKED, f"ms on the device's stream for a batch of {size}", [pageable, locked])
    waiting = loader_rates.comparison(ASKED, f"ms inside the calls for a page-locked batch of {size}", [waited, asked])
    return [{**locking, "own_ms": statistics.median(found["page_locking"])}, waiting]
