# SPDX-License-Identifier: Apache-2.0
"""Compares the gain that a diagnosis promises for a change with the gain of making the change."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

NEAR = 0.2  # maximum error of a promise
_WIDE = 2.0  # times its lower end: an interval with a larger upper end is too wide to be wrong


@dataclass(frozen=True)
class Change:
    """Either arguments for the script's loader, or its second form, which removes a cause."""

    causes: tuple[str, ...]  # whose verdicts promise some of the gain
    promised: tuple[float, float]  # share of additional steps per second, [low, high]
    settings: dict[str, Any] = field(default_factory=dict)
    mended: str = ""
    workers: int | None = None  # settings in the diagnosis that the script itself must use

    @property
    def name(self) -> str:
        if self.mended:
            return f"{self.mended} mended" + (f" by num_workers={self.workers}" if self.workers is not None else "")
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())


@dataclass(frozen=True)
class Promise:
    """A change that was made, alternating with the unchanged script: steps per second as (unchanged, changed)."""

    change: Change
    pairs: tuple[tuple[float, float], ...] = ()
    not_made: str | None = None

    @property
    def before(self) -> float:
        """Returns the steps per second of the unchanged script."""
        return statistics.fmean(before for before, _ in self.pairs)

    @property
    def measured(self) -> float:
        """Returns the ratio of steps per second: the geometric mean, so that half and twice as many cancel out."""
        return math.exp(statistics.fmean(math.log(after / before) for before, after in self.pairs))

    @property
    def promised(self) -> tuple[float, float, float]:
        """Returns the promised ratio: the geometric middle of the interval."""
        low, high = (1 + gain for gain in self.change.promised)
        return math.sqrt(low * high), low, high

    @property
    def near(self) -> bool:
        return abs(self.promised[0] / self.measured - 1) <= NEAR

    @property
    def width(self) -> float:
        _, low, high = self.promised
        return high / low

    @property
    def inside(self) -> bool:
        """Whether the interval is informative."""
        _, low, high = self.promised
        return low <= self.measured <= high and self.width <= _WIDE

    def line(self) -> str:
        if self.not_made is not None:
            return f"{self.change.name}: not made, {self.not_made}"
        middle, low, high = (self.before * times for times in self.promised)
        ratios = [after / before for before, after in self.pairs]
        where = "inside" if self.inside else "wide" if self.width > _WIDE else "outside"
        return (
            f"{self.change.name}: promised {middle:.1f} steps/s [{low:.1f}, {high:.1f}] after {self.before:.1f}, "
            f"measured {self.before * self.measured:.1f} (x{min(ratios):.2f} to x{max(ratios):.2f})"
            f"  {'near' if self.near else 'OFF'}, {where}"
        )

    def as_dict(self) -> dict[str, Any]:
        change = {**asdict(self.change), "name": self.change.name}
        if self.not_made is not None:
            return {"change": change, "not_made": self.not_made}
        measured = {"times_promised": self.promised, "times_measured": self.measured, "width": self.width}
        return {"change": change, "pairs": self.pairs, **measured, "near": self.near, "inside": self.inside}


def tried(
    changes: Sequence[Change], rounds: int, first: float | None, rate: Callable[[Change | None], Any]
) -> list[Promise]:
    """Each change against the script as it is, in turn, so that what a machine does meanwhile meets both.

    Args:
        changes: what to try; each round tries all of them after the script as it is.
        rounds: at least 1.
        first: steps per second of the script as it is, where it ran already: the first round's.
        rate: runs the script with a change, or as it is (None); steps per second, or a word why there are none.
    """
    pairs: list[list[tuple[float, float]]] = [[] for _ in changes]
    reasons: list[str | None] = [None for _ in changes]
    for number in range(rounds):
        before = first if number == 0 and first else rate(None)
        for at, change in enumerate(changes):
            if reasons[at] is not None:
                continue
            after = rate(change) if isinstance(before, float) else before
            if isinstance(before, float) and isinstance(after, float):
                pairs[at].append((before, after))
            else:
                reasons[at] = str(after)
        if all(reasons):
            break
    return [
        Promise(change, tuple(found), reason) for change, found, reason in zip(changes, pairs, reasons, strict=True)
    ]


def summary(promises: Iterable[Promise]) -> str:
    """Returns a sentence with the number of promises that were kept. Empty if none was tested."""
    made = [promise for promise in promises if promise.not_made is None]
    if not made:
        return ""
    near, inside = sum(promise.near for promise in made), sum(promise.inside for promise in made)
    wide = sum(promise.width > _WIDE for promise in made)
    width = statistics.median(promise.width for promise in made)
    return (
        f"{near} of {len(made)} promised gains came true within {NEAR:.0%}: {near / len(made):.0%}; {inside} lie "
        f"inside the interval\nan interval's high end is {width:.2f} times its low end in the median; {wide} are too "
        f"wide to say anything (over {_WIDE:g} times) and count as outside"
    )
