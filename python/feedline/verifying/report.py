# SPDX-License-Identifier: Apache-2.0
"""What a verification has to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import Error
from ..findings import Finding
from .pages import TO_DO

VERSION = 1  # of its JSON: verification.schema.json


class Place(NamedTuple):
    """A sample by its name."""

    shard: str  # "": of a folder
    key: str
    label: str | None


class Verification(NamedTuple):
    """What was proved of a source, and what was found wrong."""

    source: str
    format: str
    shards: int  # that were looked at; 0: a folder
    parts_found: int  # of the parts, those that an earlier call had verified
    samples: int  # that were read
    bytes: int  # of their files
    decoded: bool
    checksums: int  # shards that were compared with a manifest's
    classes: dict[str, int]  # samples by class; empty: they have no labels
    duplicate_samples: int  # samples whose bytes an earlier one has
    duplicates: list[list[Place]]  # which, the first of them; no more than 1,000 groups
    world_size: int
    order_exact: bool | None  # None: not looked at, as the source does not open
    findings: list[Finding]

    @property
    def sound(self) -> bool:
        """Nothing was found but notes."""
        return all(finding.severity == "note" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """JSON, as verification.schema.json has it."""
        return {
            "verification": VERSION,
            **self._asdict(),
            "duplicates": [[place._asdict() for place in group] for group in self.duplicates],
            "findings": [finding_as_dict(finding) for finding in self.findings],
            "sound": self.sound,
        }


def found(code: str, severity: str, text: str, *, shard: str = "", key: str = "", offset: int | None = None) -> Finding:
    """A finding at a place, with what to do."""
    about = {"shard": shard, "key": key, "offset": offset}
    return Finding(code, severity, evidence=(text,), fix=TO_DO.get(code, ""), about=about)


def found_error(code: str, error: Error, *, shard: str = "", key: str = "") -> Finding:
    """An error of the engine's as a finding: it knows its place."""
    return found(code, "error", str(error), shard=error.shard or shard, key=error.key or key, offset=error.offset)


def finding_as_dict(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        **finding.about,
        "text": finding.text,
        "fix": finding.fix,
    }


def finding_of(stored: dict[str, Any]) -> Finding:
    """What :func:`finding_as_dict` gave."""
    about = {name: stored[name] for name in ("shard", "key", "offset")}
    return Finding(stored["code"], stored["severity"], evidence=(stored["text"],), fix=stored["fix"], about=about)


_ORDER = ("error", "critical", "warning", "note")


def sorted_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Errors first, else as they were found."""
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))
