# SPDX-License-Identifier: Apache-2.0
"""What a diagnosis says: causes, what could not be judged, and what is said of other loaders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from feedline.findings import Abstention, Finding
from feedline.findings.shown import as_cause


@dataclass(frozen=True)
class Diagnosis:
    verdicts: list[Finding] = field(default_factory=list)  # causes, the largest share first
    abstained: list[Abstention] = field(default_factory=list)
    more_workers: str | None = None  # why more workers will not help, or how many will, or how many fewer
    drop_in: str | None = None  # what Feedline's loader in the place of torch's was measured to gain

    def as_dict(self) -> dict[str, Any]:
        """As docs/diagnose-method.md describes it."""
        return {
            "verdicts": [as_cause(finding) for finding in self.verdicts],
            "abstained": [{"cause": one.code, "missing": one.missing} for one in self.abstained],
            "more_workers": self.more_workers,
            "drop_in": self.drop_in,
        }
