# SPDX-License-Identifier: Apache-2.0
"""Turns an analysis into findings, most severe first."""

from __future__ import annotations

from ..findings import SEVERITIES, Finding
from .causes import registered
from .rules import Analysis


def evaluate(analysis: Analysis) -> tuple[Finding, ...]:
    """Returns findings, sorted by severity, then by the priority of the cause and by line number."""
    ordered = [
        (-SEVERITIES.index(finding.severity), cause.priority, finding.about.get("line", 0), i, finding)
        for cause in registered()
        for i, finding in enumerate(cause.findings(analysis))
    ]
    return tuple(one[-1] for one in sorted(ordered, key=lambda one: one[:-1]))


def has_problems(findings: tuple[Finding, ...]) -> bool:
    """Whether any finding is more than advice."""
    return any(finding.severity != "note" for finding in findings)
