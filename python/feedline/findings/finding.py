# SPDX-License-Identifier: Apache-2.0
"""A finding of a verb, and a check that could not be evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .catalogue import Threshold

SEVERITIES = ("note", "warning", "critical", "error")  # error: the data are damaged, and reading fails

CERTAIN = Threshold(0.9, "minimum confidence of a certain finding: all signals against it were checked")
NOTE = Threshold(0.05, "of the time: smaller shares are not reported")
WARNING = Threshold(0.10, "of the time: as in the TensorBoard plugin and TraceML")
CRITICAL = Threshold(0.20, "of the time: as in TraceML")


def severity_of(share: float) -> str:
    """Returns the severity of a share of the time of at least :data:`NOTE`."""
    return "critical" if share >= CRITICAL else "warning" if share >= WARNING else "note"


def gain_words(gain: tuple[float, float], unit: str) -> str:
    """Formats a relative gain as ``40% to 90% more batches per second``, or ``up to 90% more batches per second``."""
    low, high = (f"{end:.0%}" for end in gain)
    interval = high if low == high else f"up to {high}" if gain[0] < 0.005 else f"{low} to {high}"
    return f"{interval} more {unit} per second"


@dataclass(frozen=True)
class Finding:
    """A finding of a verb.

    Attributes:
        code: stable name, in snake_case; ``feedline explain CODE`` prints its page.
        severity: one of :data:`SEVERITIES`.
        share: part of the loop's or the steps' time, 0 to 1; 0 if it costs no time.
        confidence: 0 to 1; from :data:`CERTAIN` on it is certain.
        evidence: sentences for it, with measurements.
        against: sentences against it.
        fix: in one or two sentences; "" if there is none.
        gain: [low, high]: relative increase in batches or steps per second without the cause; 0.5 is half as many
            again. (0, 0) if unknown.
        about: the subject's name, if a run has several: a rank, a shard, a fact.
    """

    code: str
    severity: str
    share: float = 0.0
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    fix: str = ""
    gain: tuple[float, float] = (0.0, 0.0)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def certain(self) -> bool:
        return self.confidence >= CERTAIN

    @property
    def text(self) -> str:
        """The evidence as one text, for verbs that print one sentence per finding."""
        return "; ".join(self.evidence)

    @property
    def confidence_text(self) -> str:
        """``certain``, or ``confidence 60%``."""
        return "certain" if self.certain else f"confidence {self.confidence:.0%}"

    @property
    def sentences(self) -> list[str]:
        """The evidence, and the evidence against it with a "but"."""
        return [*self.evidence, *(f"but: {sentence}" for sentence in self.against)]

    def gain_text(self, unit: str) -> str:
        """``40% to 90% more batches per second``, or "" if no gain is predicted."""
        return gain_words(self.gain, unit) if self.gain[1] > 0 else ""

    def _repr_html_(self) -> str:
        """HTML for a notebook."""
        from . import inline

        return inline.html([self])


@dataclass(frozen=True)
class Abstention:
    """A check that could not be evaluated.

    Attributes:
        code: of the possible finding.
        missing: the missing signal, and the easiest way to get it.
    """

    code: str
    missing: str
