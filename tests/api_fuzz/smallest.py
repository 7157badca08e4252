# SPDX-License-Identifier: Apache-2.0
"""The smallest case that fails as a drawn one does: operations and options are left out one by one."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

from .case import Case
from .runner import Failure, Runner

_TRIES = 3  # of a case: threads behave differently from run to run
_LIMIT_S = 120.0  # for the whole reduction
_NEEDED = {"batch_size", "dataset", "num_workers", "order", "seed"}  # of the drop-in's options: not left out


def smallest(case: Case, failure: Failure, runner: Runner) -> tuple[Case, bool]:
    """The smallest case, and whether it fails again when it is run alone."""
    if not _fails(case, failure, runner):
        return case, False
    if failure.verdict == "hang":
        return case, True  # each try would take the whole limit
    reduced, end = True, time.monotonic() + _LIMIT_S
    while reduced:
        reduced = False
        for candidate in _reductions(case):
            if time.monotonic() > end:
                return case, True
            if _fails(candidate, failure, runner):
                case, reduced = candidate, True
                break
    return case, True


def _fails(case: Case, failure: Failure, runner: Runner) -> bool:
    tries = 1 if failure.verdict == "hang" else _TRIES
    return any(
        isinstance(result, Failure) and (result.verdict, _kind(result)) == (failure.verdict, _kind(failure))
        for result in (_alone(case, runner) for _ in range(tries))
    )


def _kind(failure: Failure) -> str:
    """The exception without names and numbers."""
    if failure.verdict != "exception":
        return ""
    line = failure.detail.partition("\n")[0].partition(" [dataset")[0]
    return re.sub(r"'[^']*'|\([^)]*\)|\d+", "", line)


def _alone(case: Case, runner: Runner) -> str | Failure:
    result = runner.run(case)
    if isinstance(result, Failure):
        return result
    return runner.ends() or result


def _reductions(case: Case) -> Iterator[Case]:
    for i in range(len(case.steps)):
        yield replace(case, steps=case.steps[:i] + case.steps[i + 1 :])
    for name in case.options:
        if name not in _NEEDED:
            yield replace(case, options={key: value for key, value in case.options.items() if key != name})
