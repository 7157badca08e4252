# SPDX-License-Identifier: Apache-2.0
"""Runs and profiles a command, then runs experiments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from feedline.diagnose.experiments import after_run, worker_sweep
from feedline.profiler import session
from feedline.profiler.recordings import Recording
from feedline.profiler.session import Change, Trying


def watch(
    command: Sequence[str],
    budget: float = 0.0,
    change: Change | None = None,
    tell: Callable[[str, float], None] = lambda _what, _left_s: None,
    root: Path = Path("/"),
) -> Recording:
    """Runs `command` with `session.run`, then experiments for up to `budget` seconds (0 for none).

    `tell` is called with the progress of experiments; `root` is as for `session.run`. Raises CommandError if the
    command cannot be started.
    """
    if budget <= 0:
        return session.run(command, change, root=root)
    make = functools.partial(after_run.make_experiments, budget=budget, tell=tell)
    return session.run(command, change, Trying(worker_sweep.__name__, make), root)
