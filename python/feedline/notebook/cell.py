# SPDX-License-Identifier: Apache-2.0
"""Diagnoses code in this process as ``feedline diagnose`` does for a command."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

from feedline import cost
from feedline import record as records
from feedline.diagnose import report, verdict
from feedline.diagnose.experiments import after_run, worker_sweep
from feedline.diagnose.steps import steps_of
from feedline.notebook.result import Diagnosed
from feedline.profiler import in_process
from feedline.profiler.session import Trying
from feedline.profiler.summary import timeline


def diagnose(
    work: Callable[[], str | None],
    name: str,
    budget: float = 0.0,
    price: cost.Price = cost.NO_PRICE,
    tell: Callable[[str, float], None] = lambda _what, _left_s: None,
    files: Callable[[], Mapping[str, str]] = dict,
) -> Diagnosed:
    """Runs and diagnoses `work`, which returns the reason if it ended early, or None.

    Args:
        work: function to profile; called once, in this process.
        name: name of the work in the record, such as "In [5]".
        budget: seconds for experiments on a copy of this process after the work; 0 for none.
        price: price of a GPU-hour.
        tell: called repeatedly with the current experiment and the remaining seconds.
        files: called after the work; returns display names for temporary files.
    """
    trying = None
    if budget > 0:
        trying = Trying(worker_sweep.__name__, functools.partial(after_run.make_experiments, budget=budget, tell=tell))
    recording = in_process.run(work, name, trying)
    recording.waits = [_renamed(one, files()) for one in recording.waits]
    summary = timeline.summarise(recording)
    found = verdict.evaluate(summary)
    record = records.from_diagnosis(report.as_json(recording, summary, found, None, price), steps_of(recording))
    text = report.as_text(recording, summary, found, None, price)
    return Diagnosed(record, found.verdicts, text)


def _renamed(waits: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """Returns the waits of batch workers, with the paths of these files replaced by their display names."""
    seen = []
    for kind, location, count in waits["seen"]:
        path, _, rest = location.partition(":")
        known = files.get(path) or files.get(os.path.abspath(path))
        seen.append([kind, f"{known}:{rest}" if known else location, count])
    return {**waits, "seen": seen}
