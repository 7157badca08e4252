# SPDX-License-Identifier: Apache-2.0
"""The result of a verification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import Error
from ..findings import Finding
from .pages import TO_DO

VERSION = 1  # version of its JSON: verification.schema.json


class SampleLocation(NamedTuple):
    """A sample's location."""

    shard: str  # "" in a folder
    key: str
    label: str | None


class Verification(NamedTuple):
    """Counts and findings of a verified source."""

    source: str
    format: str
    shards: int  # shards examined; 0 for a folder
    parts_found: int  # parts that an earlier call had verified
    samples: int  # samples read
    bytes: int  # size of their files
    decoded: bool
    checksums: int  # shards compared with a manifest
    classes: dict[str, int]  # samples by class; empty without labels
    duplicate_samples: int  # samples with the bytes of an earlier one
    duplicates: list[list[SampleLocation]]  # the first groups of them, at most 1,000
    world_size: int
    order_exact: bool | None  # None: not checked, as the source cannot be opened
    findings: list[Finding]

    @property
    def sound(self) -> bool:
        """Whether all findings are notes."""
        return all(finding.severity == "note" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Returns JSON that conforms to verification.schema.json."""
        return {
            "verification": VERSION,
            **self._asdict(),
            "duplicates": [[location._asdict() for location in group] for group in self.duplicates],
            "findings": [finding_as_dict(finding) for finding in self.findings],
            "sound": self.sound,
        }


def found(code: str, severity: str, text: str, *, shard: str = "", key: str = "", offset: int | None = None) -> Finding:
    """Returns a finding with its location and remedy."""
    about = {"shard": shard, "key": key, "offset": offset}
    return Finding(code, severity, evidence=(text,), fix=TO_DO.get(code, ""), about=about)


def found_error(code: str, error: Error, *, shard: str = "", key: str = "") -> Finding:
    """Converts an error of the engine to a finding, with its location."""
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
    """Inverse of :func:`finding_as_dict`."""
    about = {name: stored[name] for name in ("shard", "key", "offset")}
    return Finding(stored["code"], stored["severity"], evidence=(stored["text"],), fix=stored["fix"], about=about)


_ORDER = ("error", "critical", "warning", "note")


def sorted_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Sorts errors first; otherwise keeps the order in which they were found."""
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))
