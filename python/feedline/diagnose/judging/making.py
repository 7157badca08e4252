# SPDX-License-Identifier: Apache-2.0
"""What making a batch takes, as the causes of its stages say it."""

from __future__ import annotations

from feedline.diagnose.judging.case import Case, stage_sentence
from feedline.diagnose.judging.cause import Found

NEEDS = ("stages", "processes")


def evidence(case: Case) -> list[str]:
    """How long a batch takes to make, and how that divides."""
    making = case.summary.making
    per_batch = f"a batch takes {making.wall_ms:.1f} ms to make, {making.cpu_ms:.1f} ms of it CPU"
    return [per_batch, stage_sentence(making.stages)]


def found(case: Case, confidence: float, *stages: str) -> Found:
    """The share that these stages have of the production that is left."""
    return Found(case.stage_share(*stages), confidence, evidence(case), needs=NEEDS)
