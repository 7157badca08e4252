# SPDX-License-Identifier: Apache-2.0
"""What the makers of batches wait for, when they run no code: files, or something else."""

from __future__ import annotations

from feedline.findings import Threshold
from feedline.watching.summary.figures import Summary, WaitedFor

ENOUGH_LOOKS = Threshold(24, "looks: a share of them is 20 % off at most, nineteen times in twenty")
MOSTLY = Threshold(0.8, "of the waiting: what is less is told apart by too few looks for a certain verdict")
_SURE, _LIKELY = 0.9, 0.8
_WORDS = {
    "file": "a file's call",
    "sleep": "a sleep",
    "lock": "a lock",
    "network": "a socket",
    "events": "events of the network or of another process",
    "process": "another process",
    "store": "answers of a store behind a network",
    "other": "another call of the system",
}


def in_files(summary: Summary) -> float | None:
    """Share of the makers' waiting that was spent on files; None: it was not looked at. Native threads only read."""
    if summary.native:
        return 1.0
    seen = summary.making.waited_for
    return None if seen is None else seen.in_files


def outside_for(summary: Summary) -> str:
    """The kind that most of the waiting outside of files is for; "": none, or nobody looked."""
    return summary.making.waited_for.outside if summary.making.waited_for is not None else ""


def limit_of(summary: Summary, part: float) -> float:
    """The most that is held for certain of waits that are this part of all that were looked at."""
    seen = summary.making.waited_for
    if summary.native:
        return 1.0
    if seen is None:
        return _LIKELY
    return _SURE if seen.looks >= ENOUGH_LOOKS and part >= MOSTLY else _LIKELY


def sentences(seen: WaitedFor | None) -> list[str]:
    """What was seen of the waiting, and where it was."""
    if seen is None:
        return []
    parts = sorted(seen.kinds.items(), key=lambda kind: -kind[1])
    told = ", ".join(f"{_WORDS.get(kind, kind)} {share:.0%}" for kind, share in parts[:3])
    found = [f"{seen.looks} looks found it waiting, for: {told}"]
    return found + [f"{place.share:.0%} of them at {place.line}" for place in seen.places[:1]]
