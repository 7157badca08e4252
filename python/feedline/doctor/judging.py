# SPDX-License-Identifier: Apache-2.0
"""From a case to findings, the worst first."""

from __future__ import annotations

from ..findings import SEVERITIES, Finding
from .case import Case
from .causes import registered


def judge(case: Case) -> tuple[Finding, ...]:
    """Critical ones first; of one severity, in the causes' turns, a script's by their lines."""
    told = [
        (-SEVERITIES.index(finding.severity), cause.turn, finding.about.get("line", 0), i, finding)
        for cause in registered()
        for i, finding in enumerate(cause.findings(case))
    ]
    return tuple(one[-1] for one in sorted(told, key=lambda one: one[:-1]))


def has_problems(findings: tuple[Finding, ...]) -> bool:
    """Whether there is more than advice."""
    return any(finding.severity != "note" for finding in findings)
