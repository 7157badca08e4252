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
    """The facts that were examined. None means that a fact is absent or was not requested."""

    machine: PreflightFacts
    load: PlannedLoad | None = None
    script: Script | None = None
    source: Source | None = None
    leftovers: tuple[Leftover, ...] = ()
    ranks: int | None = None  # on this machine, by the launcher's command line

    @property
    def wants_gpu(self) -> bool:
        """Whether the machine has a GPU, an NVIDIA driver, or NVIDIA device files."""
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
        page: the text that ``feedline explain`` prints; its thresholds are taken from the constants in the cause's
            file.
        priority: position among causes of the same severity: see :data:`BROKEN` and the constants next to it.
        evaluate: function that returns the occurrences of the problem, or none if a required fact is missing.
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
