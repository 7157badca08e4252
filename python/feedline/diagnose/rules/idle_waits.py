# SPDX-License-Identifier: Apache-2.0
"""Describes the waits of workers that run no code: waits for files, and other waits."""

from __future__ import annotations

from feedline.findings import Threshold
from feedline.profiler.summary.figures import Summary, WaitedFor

ENOUGH_LOOKS = Threshold(
    24, "minimum number of samples: the error of a share is then at most 20 %, with 95 % confidence"
)
MOSTLY = Threshold(0.8, "fraction of the samples of waits below which a verdict is uncertain")
_SURE, _LIKELY = 0.9, 0.8
_WORDS = {
    "file": "a file's call",
    "sleep": "a sleep",
    "lock": "a lock",
    "network": "a socket",
    "events": "network or process events",
    "process": "another process",
    "store": "responses from a remote store",
    "other": "a different system call",
}


def in_files(summary: Summary) -> float | None:
    """Returns the share of waiting time that is spent on files, or None if it was not observed. Native threads wait
    only for files.
    """
    if summary.native:
        return 1.0
    seen = summary.making.waited_for
    return None if seen is None else seen.in_files


def outside_for(summary: Summary) -> str:
    """Returns the most frequent kind of wait that is not for files, or "" if there is none or it was not observed."""
    return summary.making.waited_for.outside if summary.making.waited_for is not None else ""


def limit_of(summary: Summary, part: float) -> float:
    """Returns the maximum confidence for a cause whose waits are this share of all observed waits."""
    seen = summary.making.waited_for
    if summary.native:
        return 1.0
    if seen is None:
        return _LIKELY
    return _SURE if seen.looks >= ENOUGH_LOOKS and part >= MOSTLY else _LIKELY


def sentences(seen: WaitedFor | None) -> list[str]:
    """Describes the observed waits and where they occurred."""
    if seen is None:
        return []
    parts = sorted(seen.kinds.items(), key=lambda kind: -kind[1])
    text = ", ".join(f"{_WORDS.get(kind, kind)} {share:.0%}" for kind, share in parts[:3])
    found = [f"waiting ({seen.looks} system-call samples): {text}"]
    return found + [f"{location.share:.0%} of them at {location.line}" for location in seen.places[:1]]
