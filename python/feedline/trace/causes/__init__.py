# SPDX-License-Identifier: Apache-2.0
"""One file per cause that a trace can show, by the names that `feedline diagnose` uses. It registers by being here."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from ...findings import Entry, rules_in
from ..judging import Case, Cause
from ..verdicts import Findings

__all__ = ["entries", "judge", "registered"]


@functools.cache
def registered(folders: tuple[Path | str, ...] = ()) -> tuple[Cause, ...]:
    """All causes, in their turns.

    Raises:
        ConfigError: a file makes no cause, or one of another name than its own; the file is named.
    """
    causes = rules_in(sys.modules[__name__], folders, "CAUSE", Cause)
    return tuple(sorted(causes, key=lambda cause: (cause.turn, cause.code)))


def entries(folders: tuple[Path | str, ...] = ()) -> list[Entry]:
    """The pages of all causes."""
    return [cause.page for cause in registered(folders)]


def judge(case: Case) -> Findings:
    """All that a trace shows, the largest share first."""
    findings = case.findings
    if not case.durations.sum():
        findings.abstain("events: the trace holds none that a step could be made of", "compute_bound")
        return findings
    case.abstain_from_loading()
    if case.device is None:
        findings.abstain(
            "events of the GPU: record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
            *(cause.code for cause in registered() if cause.of_device),
        )
    for cause in registered():
        if cause.judges is not None and (case.device is not None or not cause.of_device):
            cause.judges(case)
    findings.verdicts.sort(key=lambda finding: -finding.share)
    return findings
