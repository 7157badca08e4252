# SPDX-License-Identifier: Apache-2.0
"""Converts a rule's result into a finding, with the certainty that the measurements allow."""

from __future__ import annotations

from feedline.diagnose.rules import contradictions
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Claim, Found
from feedline.diagnose.rules.certainty import limited, others_cpus
from feedline.findings import Finding, severity_of


def finding_of(analysis: Analysis, cause: Cause, found: Found) -> Finding:
    """Returns the finding of `cause` in a run; `analysis` contains earlier findings."""
    summary = analysis.summary
    claim = Claim(summary, cause, found.share, found.needs, tuple(one.code for one in analysis.findings))
    confidence, reasons = limited(claim, found.confidence)
    contradicted = contradictions.against(cause, summary, found.share)
    against = [*found.against, *reasons, *contradicted]
    busy = others_cpus(claim)
    if busy is not None and busy not in against:
        against.append(busy)
    share = min(max(found.share, 0.0), 1.0)
    low, high = found.gain if found.gain is not None else cause.gain(summary, share)
    if contradicted:
        confidence = min(confidence, contradictions.MOST)
    if contradicted or "consumer" in summary.missing:
        low = 0.0
    return Finding(
        cause.code,
        severity_of(share) if cause.is_fault else "note",
        round(share, 4),
        round(min(max(confidence, 0.0), 1.0), 2),
        tuple(found.evidence),
        tuple(against),
        cause.fix(summary),
        (round(low, 3), round(high, 3)),
    )
