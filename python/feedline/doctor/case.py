# SPDX-License-Identifier: Apache-2.0
"""What a rule of the doctor is given, and the shape of one. Each is a file of `causes`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..findings import Entry, Finding
from ..machine.planned_load import PlannedLoad
from ..machine.surroundings import Surroundings
from .leftovers import Leftover
from .script.facts import Script
from .source import Source

# the first turns of causes about these; within one severity, what is asked first is told first
BROKEN, LOAD, SCRIPT, MACHINE, STORAGE, ADVICE = 100, 200, 300, 400, 500, 600


@dataclass(frozen=True)
class Case:
    """What was looked at. None: there is no such thing, or nobody asked for it."""

    machine: Surroundings
    load: PlannedLoad | None = None
    script: Script | None = None
    source: Source | None = None
    leftovers: tuple[Leftover, ...] = ()

    @property
    def wants_gpu(self) -> bool:
        """Whether there is anything of a GPU here."""
        machine = self.machine
        return bool(machine.gpus) or machine.has_driver or machine.has_device_files


@dataclass(frozen=True)
class Found:
    """That it is so."""

    severity: str
    evidence: tuple[str, ...]
    fix: str = ""  # "": the cause's own
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cause:
    """What the doctor can find.

    Attributes:
        page: what ``feedline explain`` prints, without the thresholds, which the file's constants give.
        turn: its place among causes of one severity: see :data:`BROKEN` and the others.
        judge: what of it is so; nothing where a fact that it needs was not seen.
    """

    page: Entry
    turn: int
    judge: Callable[[Case], Iterator[Found]]

    def findings(self, case: Case) -> Iterator[Finding]:
        for found in self.judge(case):
            yield Finding(
                self.page.code,
                found.severity,
                evidence=found.evidence,
                fix=found.fix or self.page.to_do,
                about=found.about,
            )


def page(code: str, title: str, **texts: str) -> Entry:
    """An entry of this verb."""
    return replace(Entry(code, "doctor", title, "", "", ""), **texts)  # type: ignore[arg-type]


def gb(count: float) -> str:
    """``43.0 GB``; less than one as ``500 MB``."""
    return (
        f"{count / 1e9:.1f} GB"
        if count >= 1e9
        else f"{count / 1e6:.0f} MB"
        if count >= 1e6
        else f"{count / 1e3:.0f} kB"
    )
