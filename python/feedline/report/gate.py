# SPDX-License-Identifier: Apache-2.0
"""Decides for `feedline compare` whether a run is slower than a baseline run by more than the limit.

Metrics are compared by the logarithm of their ratio. Each side is one record or several. The spread of one record is
the interval within the run; that of several records is the variation from run to run, which matters on shared machines.
A regression is reported if the ratio is beyond the limit and too far from 1 to be due to chance; see
docs/decisions/tools-compare-in-turns.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import t_distribution

CHANCE = 0.001  # highest probability of a false alarm
_CONFIDENCE = 0.975  # at either end of the reported interval
_BLOCKS = 10  # blocks per run for its interval; see series.py
REGRESSION, UNDECIDED, FINE = "regression", "undecided", "fine"
Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Judged:
    """The comparison of one metric.

    Attributes:
        base, latest: the values; geometric means if there are several records.
        worse: the share by which the metric became worse; negative if it became better.
        low, high: 95 % interval of `worse`; None if the spread is unknown.
        outcome: "regression", "undecided" (the interval contains `limit`) or "fine".
        limit: the share by which the metric may become worse.
    """

    name: str
    label: str
    unit: str
    base: float
    latest: float
    worse: float
    low: float | None
    high: float | None
    outcome: str
    limit: float

    @property
    def is_likely(self) -> bool:
        """Whether a regression is likely, with 95 % certainty; this is too low to report a regression."""
        return self.outcome == UNDECIDED and self.low is not None and self.low > self.limit


@dataclass(frozen=True)
class _Side:
    mean: float  # logarithm
    error: float | None  # standard error of the mean
    freedom: float

    @property
    def part(self) -> float:
        """The contribution of this side to the degrees of freedom, by Welch and Satterthwaite."""
        return (self.error or 0.0) ** 4 / max(self.freedom, 1)


def evaluate(base: Records, latest: Records, limit: float, names: Sequence[str] = ()) -> list[Judged]:
    """Compares the named metrics of both sides, in that order; by default, the first metric that all records share.

    Args:
        base, latest: one or more records, as returned by `feedline.record.read`.
        limit: share between 0 and 1 by which a metric may become worse.
    """
    shared = _shared([*base, *latest])
    wanted = [name for name in names if name in shared] if names else shared[:1]
    return [_judged(name, base, latest, limit) for name in wanted]


def _shared(records: Records) -> list[str]:
    """Returns the metrics that are positive in all records and whose better direction is known."""
    found = [
        {figure["name"] for figure in record["figures"] if figure["value"] > 0 and figure["better"] is not None}
        for record in records
    ]
    return [figure["name"] for figure in records[0]["figures"] if all(figure["name"] in one for one in found)]


def _judged(name: str, base: Records, latest: Records, limit: float) -> Judged:
    rows = [[_figure(record, name) for record in side] for side in (base, latest)]
    sides = [_side(one) for one in rows]
    like = rows[0][0]
    sign = -1 if like["better"] == "higher" else 1
    change = sign * (sides[1].mean - sides[0].mean)
    most = _log_of(limit, sign)
    low = high = None
    outcome = UNDECIDED if change > most else FINE
    if all(side.error is not None for side in sides):
        error = math.hypot(*(side.error or 0.0 for side in sides))
        freedom = error**4 / parts if (parts := sum(side.part for side in sides)) else math.inf
        half = t_distribution.quantile(_CONFIDENCE, min(freedom, 1e6)) * error
        low, high = change - half, change + half
        sure = change > t_distribution.quantile(1 - CHANCE, min(freedom, 1e6)) * error
        outcome = REGRESSION if change > most and sure else UNDECIDED if high > most else FINE
    low, high = (None if end is None else _share_of(end, sign) for end in (low, high))
    base_mean, latest_mean = (math.exp(side.mean) for side in sides)
    worse = _share_of(change, sign)
    return Judged(name, like["label"], like["unit"], base_mean, latest_mean, worse, low, high, outcome, limit)


def _figure(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(figure for figure in record["figures"] if figure["name"] == name)
    return found


def _side(figures: Sequence[Mapping[str, Any]]) -> _Side:
    logarithms = [math.log(figure["value"]) for figure in figures]
    if len(figures) > 1:
        error = statistics.stdev(logarithms) / math.sqrt(len(figures))
        return _Side(statistics.fmean(logarithms), error, len(figures) - 1)
    (one,) = figures
    if one["low"] is None or one["high"] is None:
        return _Side(logarithms[0], None, 1)
    half = (one["high"] - one["low"]) / 2 / one["value"]
    return _Side(logarithms[0], half / t_distribution.quantile(_CONFIDENCE, _BLOCKS - 1), _BLOCKS - 1)


def _log_of(share: float, sign: int) -> float:
    """Returns the logarithm of a change: if the metric is a tenth worse, the ratio is 0.9 for a rate and 1.1 for a
    time.
    """
    return math.log1p(share) if sign > 0 else -math.log1p(-share)


def _share_of(change: float, sign: int) -> float:
    """Computes the inverse of `_log_of` for any change."""
    return math.expm1(min(change, 700.0)) if sign > 0 else -math.expm1(min(-change, 700.0))
