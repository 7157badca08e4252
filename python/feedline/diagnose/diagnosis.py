# SPDX-License-Identifier: Apache-2.0
"""The result of a diagnosis: causes, abstentions, and advice about workers and other loaders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from feedline.diagnose.deaths import Verdict
from feedline.findings import Abstention, Finding
from feedline.findings.formats import as_cause


@dataclass(frozen=True)
class Diagnosis:
    verdicts: list[Finding] = field(default_factory=list)  # sorted by share, largest first
    abstained: list[Abstention] = field(default_factory=list)
    more_workers: str | None = None  # whether more or fewer workers would help, and how many
    drop_in: str | None = None  # measured gain of replacing torch's loader with Feedline's
    death: Verdict | None = None  # why the run died; the speed of such a run is not judged

    def as_dict(self) -> dict[str, Any]:
        """Returns the JSON object described in docs/diagnose-method.md."""
        return {
            "verdicts": [as_cause(finding) for finding in self.verdicts],
            "abstained": [{"cause": one.code, "missing": one.missing} for one in self.abstained],
            "more_workers": self.more_workers,
            "drop_in": self.drop_in,
            "death": None if self.death is None else self.death.as_dict(),
        }
