# SPDX-License-Identifier: Apache-2.0
"""Compares the measurements of two records: metrics with their spread, and the times of stages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_UNKNOWN_SPREAD = 0.05  # smaller differences are ignored if a record has no interval


@dataclass(frozen=True)
class FigureDifference:
    name: str
    label: str
    unit: str
    a: float
    b: float
    ratio: float | None  # b over a
    differs: bool  # beyond the spread
    spread_known: bool
    better: str | None


@dataclass(frozen=True)
class StageDifference:
    name: str
    a: float  # ms per batch
    b: float
    ratio: float  # b over a


def figures_of(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[FigureDifference]:
    of_b = {figure["name"]: figure for figure in b["figures"]}
    return [_figure(figure, of_b[figure["name"]]) for figure in a["figures"] if figure["name"] in of_b]


def _figure(a: Mapping[str, Any], b: Mapping[str, Any]) -> FigureDifference:
    bounds = [one[bound] for one in (a, b) for bound in ("low", "high")]
    known = None not in bounds
    if known:
        differs = bounds[1] < bounds[2] or bounds[3] < bounds[0]
    else:
        differs = abs(b["value"] - a["value"]) > _UNKNOWN_SPREAD * max(abs(a["value"]), abs(b["value"]))
    ratio = b["value"] / a["value"] if a["value"] > 0 and b["value"] > 0 else None
    return FigureDifference(
        a["name"], a["label"], a["unit"], a["value"], b["value"], ratio, differs, known, a["better"]
    )


def speed_of(figure: FigureDifference | None) -> float | None:
    """Returns the logarithm of B's speedup over A, or None if the metric does not differ."""
    if figure is None or not figure.differs or figure.ratio is None or figure.better is None:
        return None
    return math.log(figure.ratio) * (1 if figure.better == "higher" else -1) or None


class Work:
    """The stage times of two records."""

    def __init__(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
        of_a, of_b = _times(a), _times(b)
        names = [name for name in of_a if name in of_b]
        self.rows = [StageDifference(name, of_a[name], of_b[name], of_b[name] / of_a[name]) for name in names]
        total_a, total_b = sum(of_a[name] for name in names), sum(of_b[name] for name in names)
        self.known = total_a > 0 and total_b > 0
        self._grown = math.log(total_b / total_a) if self.known else 0.0
        self._step, self._whole = (_step(a), _step(b)), (_whole(a), _whole(b))
        self._changes = {name: of_b[name] - of_a[name] for name in names}

    def share(self, stages: frozenset[str], speed: float) -> float | None:
        """Returns the fraction of the difference in speed that the times of these stages explain; None if these times
        were not recorded.

        The stage ``step`` is the loop's own work, which is a part of the total time per batch.
        """
        if "step" in stages:
            others = stages - {"step"}
            known = [self._of_step(speed), self.share(others, speed) if others else None]
            return max((one for one in known if one is not None), default=None)
        change = sum(self._changes.values())
        if not self.known or not stages & self._changes.keys():
            return None
        if change == 0:
            return 0.0
        part = sum(value for name, value in self._changes.items() if name in stages) / change
        return part * -self._grown / speed

    def share_of(self, stages: frozenset[str], slower: float, speed: float) -> float | None:
        """Returns the fraction of the difference that these stages explain if all their work takes `slower` times as
        long in B.

        The result is at most the fraction due to the stages' measured slowdown, as returned by :meth:`share`. None if
        unknown.
        """
        shown = self.share(stages, speed)
        if shown is None:
            return None
        before, after = self._taken(stages)
        if before is None or after is None or before <= 0 or after <= 0 or after == before:
            return 0.0
        expected = before * (slower - 1) / (after - before)
        return shown * min(max(expected, 0.0), 1.0)

    def _taken(self, stages: frozenset[str]) -> tuple[float | None, float | None]:
        """Returns the milliseconds per batch in these stages, in A and B."""
        if "step" in stages:
            return self._step
        rows = [row for row in self.rows if row.name in stages]
        return (sum(row.a for row in rows), sum(row.b for row in rows)) if rows else (None, None)

    def _of_step(self, speed: float) -> float | None:
        """Returns the fraction of the difference due to the step; 0 if neither run had a step."""
        if self._step == (None, None):
            return 0.0
        (step_a, step_b), (whole_a, whole_b) = self._step, self._whole
        if step_a is None or step_b is None or whole_a is None or whole_b is None or whole_a == whole_b:
            return None
        return (step_b - step_a) / (whole_b - whole_a) * -math.log(whole_b / whole_a) / speed

    def largest(self) -> str | None:
        """Describes the stage whose time changed most."""
        if not self.known or not any(self._changes.values()):
            return None
        row = max(self.rows, key=lambda row: abs(row.b - row.a))
        return f"{row.name}: {row.a:.3g} ms and {row.b:.3g} ms per batch"


def _times(record: Mapping[str, Any]) -> dict[str, float]:
    return {stage["name"]: stage["ms_per_batch"] for stage in record["stages"] if stage["ms_per_batch"]}


def _step(record: Mapping[str, Any]) -> float | None:
    """Returns the milliseconds per batch of the loop's own work."""
    known = [figure["value"] for figure in record["figures"] if figure["name"] == "step_ms"]
    known += [link["ms_per_batch"] for link in record["chain"] if link["name"] == "gpu"]
    value: float | None = known[0] if known else None
    return value


def _whole(record: Mapping[str, Any]) -> float | None:
    """Returns the milliseconds per batch of the loop."""
    rates = [figure["value"] for figure in record["figures"] if figure["name"] == "batches_per_s"]
    return 1000 / rates[0] if rates and rates[0] > 0 else None
