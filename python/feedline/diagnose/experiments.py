# SPDX-License-Identifier: Apache-2.0
"""Experiments on a clone of the script's loader, after the script has ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Rung:
    """The loader alone, without the loop's work, with one setting."""

    workers: int
    batches_per_s: float
    low: float  # 95 % interval of the mean
    high: float
    batches: int
    kept: bool = False  # gains over the rungs below


@dataclass(frozen=True)
class Experiments:
    rungs: list[Rung] = field(default_factory=list)
    refused: str | None = None  # why there are none

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        if self.refused is not None:
            return [f"  no experiments: {self.refused}"]
        lines = ["  the loader alone, by workers:"]
        for rung in self.rungs:
            kept = "" if rung.kept else "   gains nothing"
            lines.append(
                f"    {rung.workers:>3}  {rung.batches_per_s:8.1f} batches/s  [{rung.low:.1f}, {rung.high:.1f}]{kept}"
            )
        return lines
