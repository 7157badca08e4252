# SPDX-License-Identifier: Apache-2.0
"""The cost of producing a batch, as reported by the causes that concern its stages."""

from __future__ import annotations

from feedline.diagnose.rules.analysis import Analysis, stage_sentence
from feedline.diagnose.rules.cause import Found

NEEDS = ("stages", "processes")


def evidence(analysis: Analysis) -> list[str]:
    """Describes how long a batch takes to produce, and the time of each stage."""
    making = analysis.summary.making
    per_batch = f"a batch takes {making.wall_ms:.1f} ms to produce, {making.cpu_ms:.1f} ms of it CPU"
    return [per_batch, stage_sentence(making.stages)]


def found(analysis: Analysis, confidence: float, *stages: str) -> Found:
    """Returns the share of these stages in the remaining production."""
    return Found(analysis.stage_share(*stages), confidence, evidence(analysis), needs=NEEDS)
