# SPDX-License-Identifier: Apache-2.0
"""Diagnoses work of this process as ``feedline diagnose`` does a command."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

from feedline import cost
from feedline import record as records
from feedline.diagnose import report, verdict
from feedline.diagnose.experiments import after_run, ladder
from feedline.diagnose.steps import steps_of
from feedline.notebook.diagnosed import Diagnosed
from feedline.watching import here
from feedline.watching.session import Trying
from feedline.watching.summary import timeline


def diagnose(
    work: Callable[[], str | None],
    name: str,
    budget: float = 0.0,
    price: cost.Price = cost.NO_PRICE,
    tell: Callable[[str, float], None] = lambda _what, _left_s: None,
    files: Callable[[], Mapping[str, str]] = dict,
) -> Diagnosed:
    """What takes the time of `work`, which gives what ended it early, in words, or None.

    Args:
        work: what is run once, here.
        name: what the record is to call it, such as "In [5]".
        budget: seconds for experiments on a copy of this process afterwards; 0: none.
        price: of a GPU-hour.
        tell: hears what is tried, and the seconds left, again and again.
        files: afterwards, what to call files that nobody knows by their names.
    """
    trying = None
    if budget > 0:
        trying = Trying(ladder.__name__, functools.partial(after_run.make_experiments, budget=budget, tell=tell))
    recording = here.run(work, name, trying)
    recording.waits = [_renamed(one, files()) for one in recording.waits]
    summary = timeline.summarise(recording)
    found = verdict.judge(summary)
    record = records.from_diagnosis(report.as_json(recording, summary, found, None, price), steps_of(recording))
    text = report.as_text(recording, summary, found, None, price)
    return Diagnosed(record, found.verdicts, text)


def _renamed(waits: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """What makers of batches waited for, with places in these files named otherwise."""
    seen = []
    for kind, place, count in waits["seen"]:
        path, _, rest = place.partition(":")
        known = files.get(path) or files.get(os.path.abspath(path))
        seen.append([kind, f"{known}:{rest}" if known else place, count])
    return {**waits, "seen": seen}
