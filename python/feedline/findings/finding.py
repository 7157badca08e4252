# SPDX-License-Identifier: Apache-2.0
"""A finding of a subcommand, and a check that could not be evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .catalogue import Threshold

SEVERITIES = ("note", "warning", "critical", "error")  # error: the data are damaged, and reading fails

CERTAIN = Threshold(0.9, "minimum confidence of a certain finding, for which all signals against it were checked")
NOTE = Threshold(0.05, "minimum share of the time that is reported")
WARNING = Threshold(0.10, "minimum share of the time for a warning, as in the TensorBoard plugin and TraceML")
CRITICAL = Threshold(0.20, "minimum share of the time for a critical finding, as in TraceML")


def severity_of(share: float) -> str:
    """Returns the severity for a share of the time, which must be at least :data:`NOTE`."""
    return "critical" if share >= CRITICAL else "warning" if share >= WARNING else "note"


def gain_words(gain: tuple[float, float], unit: str) -> str:
    """Formats a relative gain as ``40% to 90% more batches per second``, or ``up to 90% more batches per second``."""
    low, high = (f"{end:.0%}" for end in gain)
    interval = high if low == high else f"up to {high}" if gain[0] < 0.005 else f"{low} to {high}"
    return f"{interval} more {unit} per second"


@dataclass(frozen=True)
class Finding:
    """A finding of a subcommand.

    Attributes:
        code: stable name in snake_case; ``feedline explain CODE`` prints its page.
        severity: one of :data:`SEVERITIES`.
        share: fraction of the time of the loop or steps, 0 to 1; 0 if the problem costs no time.
        confidence: 0 to 1; the finding is certain if this is at least :data:`CERTAIN`.
        evidence: sentences that support the finding, with measurements.
        against: sentences that contradict the finding.
        fix: the fix in one or two sentences; "" if there is none.
        gain: [low, high], the relative increase in batches or steps per second if the cause is removed; 0.5 means 50 %
            more. (0, 0) if unknown.
        about: the name of the subject, such as a rank, a shard or a fact, if a run has several.
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
        """The evidence as one text, for subcommands that print one sentence per finding."""
        return "; ".join(self.evidence)

    @property
    def confidence_text(self) -> str:
        """``certain``, or ``confidence 60%``."""
        return "certain" if self.certain else f"confidence {self.confidence:.0%}"

    @property
    def sentences(self) -> list[str]:
        """The evidence, followed by the evidence against the finding after a "but"."""
        return [*self.evidence, *(f"but: {sentence}" for sentence in self.against)]

    def gain_text(self, unit: str) -> str:
        """The gain as text, such as ``40% to 90% more batches per second``, or "" if no gain is predicted."""
        return gain_words(self.gain, unit) if self.gain[1] > 0 else ""

    def _repr_html_(self) -> str:
        """Returns HTML for a notebook."""
        from . import inline

        return inline.html([self])


@dataclass(frozen=True)
class Abstention:
    """A check that could not be evaluated.

    Attributes:
        code: the code of the possible finding.
        missing: the missing signal, and the easiest way to obtain it.
    """

    code: str
    missing: str
