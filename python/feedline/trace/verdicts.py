# SPDX-License-Identifier: Apache-2.0
"""Computes a finding's share of the time, its confidence, and the gain of its fix.

A share is a fraction of the total time of the steps. ``predicted_gain`` is an interval for the relative increase in
steps per second with the fix (0.25 means a quarter more), computed from a bootstrap over the steps and the uncertainty
of the fix. ``confidence`` is 0.95 for direct measurements, lower for inferred causes, and lower with few steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..findings import Abstention, Finding, severity_of
from ..findings.finding import NOTE
from .intervals import Intervals, covered_within
from .steps import Steps

_ENOUGH_STEPS = 5
_DRAWS = 1000
_MOST_SAVED = 0.99


def gain_of(saved: float) -> float:
    """Returns the relative increase in steps per second if each step becomes shorter by the fraction `saved`; at most
    99.
    """
    return round(1 / (1 - min(max(saved, 0.0), _MOST_SAVED)) - 1, 4)


class Findings:
    """The findings about the steps.

    Attributes:
        verdicts: causes that are large enough to report.
        abstained: causes that were not evaluated, with the missing data.
    """

    def __init__(self, steps: Steps) -> None:
        self.verdicts: list[Finding] = []
        self.abstained: list[Abstention] = []
        self._windows = steps.windows
        self._durations = steps.durations.astype(np.float64)

    def abstain(self, missing: str, *causes: str) -> None:
        """Reports that `causes` could not be evaluated."""
        self.abstained += [Abstention(cause, missing) for cause in causes]

    def add(
        self,
        cause: str,
        lost: Intervals,
        confidence: float,
        evidence: list[str],
        fix: str,
        *,
        gained: tuple[float, float] = (1.0, 1.0),
        per_step: NDArray[np.floating[Any]] | None = None,
    ) -> bool:
        """Adds a finding if the time `lost` is large enough; returns whether it did.

        Args:
            lost: intervals in which `cause` delayed the steps; alternatively `per_step`, the nanoseconds lost in each
            step.
            gained: smallest and largest fraction of that time that the fix saves.
        """
        each = covered_within(lost, self._windows).astype(np.float64) if per_step is None else per_step
        share = float(each.sum() / self._durations.sum())
        if share < NOTE:
            return False
        low, high = self._interval(each)
        few = len(each) < _ENOUGH_STEPS
        self.verdicts.append(
            Finding(
                cause,
                severity_of(share),
                share,
                round(confidence * (0.8 if few else 1.0), 2),
                (*evidence, *([f"only {len(each)} steps were recorded"] if few else [])),
                fix=fix,
                gain=(gain_of(low * gained[0]), gain_of(high * gained[1])),
            )
        )
        return True

    def _interval(self, each: NDArray[np.floating[Any]]) -> tuple[float, float]:
        """Returns the 95 % bootstrap interval of the mean share over the steps; 0 to 1 for fewer than three steps."""
        if len(each) < 3:
            return 0.0, float(each.sum() / self._durations.sum())
        drawn = np.random.default_rng(0).integers(0, len(each), (_DRAWS, len(each)))
        shares = each[drawn].sum(axis=1) / np.maximum(self._durations[drawn].sum(axis=1), 1)
        low, high = np.percentile(shares, [2.5, 97.5])
        return float(low), float(high)
