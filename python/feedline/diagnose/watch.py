# SPDX-License-Identifier: Apache-2.0
"""Runs and watches a command, then runs experiments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from feedline.diagnose.experiments import after_run, worker_sweep
from feedline.profiler import session
from feedline.profiler.recordings import Recording
from feedline.profiler.session import Change, Trying


def watch(
    command: Sequence[str],
    budget: float = 0.0,
    change: Change | None = None,
    tell: Callable[[str, float], None] = lambda _what, _left_s: None,
) -> Recording:
    """Runs `command` with `session.run`, then experiments for up to `budget` seconds (0 for none).

    `tell` receives the progress of experiments. Raises CommandError if the command cannot be started.
    """
    if budget <= 0:
        return session.run(command, change)
    make = functools.partial(after_run.make_experiments, budget=budget, tell=tell)
    return session.run(command, change, Trying(worker_sweep.__name__, make))
