# SPDX-License-Identifier: Apache-2.0
"""Causes that a trace can show, with the same names as in `feedline diagnose`; one file for each cause. Each file
registers itself.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from ...findings import Entry, rules_in
from ..rules import Analysis, Cause
from ..verdicts import Findings

__all__ = ["entries", "judge", "registered"]


@functools.cache
def registered(folders: tuple[Path | str, ...] = ()) -> tuple[Cause, ...]:
    """Returns all causes by priority.

    Raises:
        ConfigError: a file defines no cause, or a cause whose code differs from the file name; the message names the
        file.
    """
    causes = rules_in(sys.modules[__name__], folders, "CAUSE", Cause)
    return tuple(sorted(causes, key=lambda cause: (cause.priority, cause.code)))


def entries(folders: tuple[Path | str, ...] = ()) -> list[Entry]:
    """Returns the documentation pages of all causes."""
    return [cause.page for cause in registered(folders)]


def evaluate(analysis: Analysis) -> Findings:
    """Returns all findings of a trace, largest share first."""
    findings = analysis.findings
    if not analysis.durations.sum():
        findings.abstain("events: the trace has no events from which steps can be derived", "compute_bound")
        return findings
    analysis.abstain_from_loading()
    if analysis.device is None:
        findings.abstain(
            "GPU events: record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
            *(cause.code for cause in registered() if cause.of_device),
        )
    for cause in registered():
        if cause.evaluate is not None and (analysis.device is not None or not cause.of_device):
            cause.evaluate(analysis)
    findings.verdicts.sort(key=lambda finding: -finding.share)
    return findings
