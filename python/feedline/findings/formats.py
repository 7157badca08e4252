# SPDX-License-Identifier: Apache-2.0
"""Formats findings and their pages as JSON, text, and parts of HTML pages."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from .catalogue import Entry
from .finding import Finding, severity_of

_WIDTH = 100
_HEAD = (
    "Meaning, evidence, thresholds and fix of each code. `feedline explain CODE` prints the page of a code in a "
    "terminal;",
    "`feedline explain --markdown` prints this document. [Findings](findings.md) describes the parts of a finding, and",
    "how to add a cause.",
)


def as_cause(finding: Finding) -> dict[str, Any]:
    """Returns a finding of `feedline diagnose` in the form used in its JSON and in run records."""
    return {
        "cause": finding.code,
        "share": finding.share,
        "confidence": finding.confidence,
        "evidence": list(finding.evidence),
        "counter_evidence": list(finding.against),
        "fix": finding.fix,
        "predicted_gain": list(finding.gain),
    }


def as_step_cause(finding: Finding) -> dict[str, Any]:
    """Returns a finding of `feedline trace` in the form used in its JSON."""
    return {
        "cause": finding.code,
        "share": finding.share,
        "severity": finding.severity,
        "confidence": finding.confidence,
        **finding.about,
        "evidence": list(finding.evidence),
        "fix": finding.fix,
        "predicted_gain": list(finding.gain),
    }


def as_alarm(finding: Finding) -> dict[str, Any]:
    """Returns a finding of `feedline top` in the form used in its JSON."""
    severity = "alarm" if finding.severity == "critical" else finding.severity
    return {"name": finding.code, "severity": severity, "text": finding.text}


def of_cause(cause: Mapping[str, Any]) -> Finding:
    """Reads a finding of any subcommand from a run record."""
    low, high = cause["predicted_gain"]
    return Finding(
        cause["cause"],
        cause.get("severity", severity_of(cause["share"])),
        cause["share"],
        cause["confidence"],
        tuple(cause["evidence"]),
        tuple(cause.get("counter_evidence", ())),
        cause["fix"],
        (low, high),
    )


class Pieces(NamedTuple):
    """Returns the parts of a finding for a page: a heading, sentences, and the fix with its gain."""

    heading: str
    sentences: list[str]
    fix: str


def pieces(finding: Finding) -> Pieces:
    gain = finding.gain_text("batches")
    promised = f" Predicted gain: {gain}." if gain else ""
    heading = f"{finding.share:.0%} of the time: {finding.code} ({finding.confidence_text})"
    return Pieces(heading, finding.sentences, finding.fix + promised)


def entry_as_dict(entry: Entry) -> dict[str, Any]:
    """Returns a page as JSON."""
    return {
        **asdict(entry),
        "thresholds": [threshold._asdict() for threshold in entry.thresholds],
        "contradicted": list(entry.contradicted),
    }


def entry_lines(entry: Entry) -> list[str]:
    """Returns a page as text."""
    lines = [f"{entry.code}  (feedline {entry.verb})", ""]
    lines += _wrapped(plain(entry.title[:1].upper() + entry.title[1:] + "."))
    for title, text in _parts(entry):
        lines += ["", title, *_wrapped(plain(text), "  ")]
    if entry.contradicted:
        lines += ["", "Never certain if", *(f"  {one}" for one in entry.contradicted)]
    if entry.thresholds:
        width = max(len(one.name) for one in entry.thresholds)
        rows = (f"{one.name:<{width}} {one.value:>9.6g}  {plain(one.reason)}" for one in entry.thresholds)
        lines += ["", "Numbers", *(line for row in rows for line in _wrapped(row, "  ", " " * (width + 14)))]
    return lines


def entry_markdown(entry: Entry) -> list[str]:
    """Returns a page as a section of a document."""
    lines = [f"### {entry.verb}: {entry.code}", "", entry.title[:1].upper() + entry.title[1:] + ".", ""]
    for title, text in _parts(entry):
        lines += [f"**{title}.** {text}", ""]
    if entry.contradicted:
        lines += [f"**Never certain if** {'; '.join(entry.contradicted)}.", ""]
    if entry.thresholds:
        lines += ["| number | is | reason |", "|---|---|---|"]
        lines += [f"| {one.name} | {one.value:.6g} | {one.reason} |" for one in entry.thresholds]
        lines.append("")
    return lines


def document(entries: Sequence[Entry]) -> str:
    """Returns all pages as one Markdown document, grouped by subcommand."""
    lines = ["# Findings, one by one", "", *_HEAD, ""]
    for verb in dict.fromkeys(entry.verb for entry in entries):
        pages = [entry for entry in entries if entry.verb == verb]
        lines += [f"## {verb}", "", "| code | says |", "|---|---|"]
        lines += [f"| [{page.code}](#{_anchor(page)}) | {page.title} |" for page in pages]
        lines += ["", *(line for page in pages for line in entry_markdown(page))]
    return "\n".join(lines).rstrip() + "\n"


def _parts(entry: Entry) -> list[tuple[str, str]]:
    parts = [
        ("What it means", entry.means),
        ("How it is recognised", entry.recognised),
        ("What to do", entry.to_do),
        ("When it is not reported", entry.abstains),
        ("An example", entry.example),
    ]
    return [(title, text) for title, text in parts if text]


def _anchor(entry: Entry) -> str:
    """Returns the anchor that GitHub generates for a heading."""
    return f"{entry.verb}-{entry.code}"


def _wrapped(text: str, indent: str = "", further: str | None = None) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent if further is None else further,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def plain(text: str) -> str:
    """Removes code marks, which a terminal does not render."""
    return text.replace("`", "")
