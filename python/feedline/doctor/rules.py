# SPDX-License-Identifier: Apache-2.0
"""The input of the doctor's rules, and the definition of a cause. Each cause is a file in `causes`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..findings import Entry, Finding
from ..machine.planned_load import PlannedLoad
from ..machine.preflight_facts import PreflightFacts
from .leftovers import Leftover
from .script.facts import Script
from .source import Source

# first priorities of the causes in each group; within a severity, findings are reported in this order
BROKEN, LOAD, SCRIPT, MACHINE, STORAGE, ADVICE = 100, 200, 300, 400, 500, 600


@dataclass(frozen=True)
class Analysis:
    """The facts that were examined. None: absent, or not requested."""

    machine: PreflightFacts
    load: PlannedLoad | None = None
    script: Script | None = None
    source: Source | None = None
    leftovers: tuple[Leftover, ...] = ()

    @property
    def wants_gpu(self) -> bool:
        """Whether there is any sign of a GPU."""
        machine = self.machine
        return bool(machine.gpus) or machine.has_driver or machine.has_device_files


@dataclass(frozen=True)
class Found:
    """One occurrence of a cause."""

    severity: str
    evidence: tuple[str, ...]
    fix: str = ""  # "" to use the cause's own
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cause:
    """A problem that the doctor can find.

    Attributes:
        page: printed by ``feedline explain``, except for the thresholds, which come from the file's constants.
        priority: its position among causes of one severity: see :data:`BROKEN` and the others.
        evaluate: returns the occurrences of the problem; none if a fact that it needs is missing.
    """

    page: Entry
    priority: int
    evaluate: Callable[[Analysis], Iterator[Found]]

    def findings(self, analysis: Analysis) -> Iterator[Finding]:
        for found in self.evaluate(analysis):
            yield Finding(
                self.page.code,
                found.severity,
                evidence=found.evidence,
                fix=found.fix or self.page.to_do,
                about=found.about,
            )


def page(code: str, title: str, **texts: str) -> Entry:
    """Creates a findings page for this command."""
    return replace(Entry(code, "doctor", title, "", "", ""), **texts)  # type: ignore[arg-type]


def gb(count: float) -> str:
    """Formats bytes as ``43.0 GB``, or ``500 MB`` below 1 GB."""
    return (
        f"{count / 1e9:.1f} GB"
        if count >= 1e9
        else f"{count / 1e6:.0f} MB"
        if count >= 1e6
        else f"{count / 1e3:.0f} kB"
    )
