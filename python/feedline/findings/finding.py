# SPDX-License-Identifier: Apache-2.0
"""One thing that a verb found, and one that it could not judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .catalogue import Threshold

SEVERITIES = ("note", "warning", "critical", "error")  # the last: what is read is damaged, and reading fails

CERTAIN = Threshold(
    0.9, "a confidence from here on is called certain: every signal that could speak against it was seen"
)
NOTE = Threshold(0.05, "of the time: a smaller share is worth no word")
WARNING = Threshold(0.10, "of the time: as the TensorBoard plugin and TraceML had it")
CRITICAL = Threshold(0.20, "of the time: as TraceML has it")


def severity_of(share: float) -> str:
    """The word for what takes this share of the time, from :data:`NOTE` on."""
    return "critical" if share >= CRITICAL else "warning" if share >= WARNING else "note"


@dataclass(frozen=True)
class Finding:
    """What a verb found.

    Attributes:
        code: stable name, in snake_case; ``feedline explain CODE`` has its page.
        severity: one of :data:`SEVERITIES`.
        share: part of the time that it takes, 0 to 1: of the loop's time, or of the steps'. 0: it is no matter of time.
        confidence: how sure it is, 0 to 1; from :data:`CERTAIN` on it is certain.
        evidence: what speaks for it, sentence by sentence, the measured figures in them.
        against: what speaks against it, sentence by sentence.
        fix: what to change, in one or two sentences; "": nothing.
        gain: [low, high]: share more batches or steps per second with the cause gone; 0.5 is half as many again.
            (0, 0): nothing is promised.
        about: what it is about, by name, where a run has several: a rank, a shard, a fact.
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
        """The evidence in one piece, for verbs that say one sentence of each."""
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
        low, high = self.gain
        return f"{low:.0%} to {high:.0%} more {unit} per second" if high > 0 else ""

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        from . import inline

        return inline.html([self])


@dataclass(frozen=True)
class Abstention:
    """What could not be judged.

    Attributes:
        code: of the finding that it would be.
        missing: the signal that was not seen, and the cheapest way to get it.
    """

    code: str
    missing: str
