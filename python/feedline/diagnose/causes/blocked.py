# SPDX-License-Identifier: Apache-2.0
"""Waiting that is no file's: a sleep, a lock, the network, another process."""

from __future__ import annotations

from feedline.diagnose.causes.case import NAMED, Case, gain_of_workers
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Summary, WaitedFor

ENOUGH_LOOKS = 24  # a share of them is 20 % off at most, nineteen times in twenty
_MOSTLY = 0.8  # of the waiting: what is less is told apart by too few looks for a certain verdict
_SURE, _LIKELY, _UNSEEN = 0.9, 0.8, 0.6
_WORDS = {
    "file": "a file's call",
    "sleep": "a sleep",
    "lock": "a lock",
    "network": "a socket",
    "events": "events of the network or of another process",
    "process": "another process",
    "other": "another call of the system",
}


def in_files(summary: Summary) -> float | None:
    """Share of the makers' waiting that was spent on files; None: it was not looked at. Native threads only read."""
    if summary.native:
        return 1.0
    seen = summary.making.waited_for
    return None if seen is None else seen.in_files


def limit_of(summary: Summary, part: float) -> float:
    """The most that is held for certain of waits that are this part of all that were looked at."""
    seen = summary.making.waited_for
    if summary.native:
        return 1.0
    if seen is None:
        return _LIKELY
    return _SURE if seen.looks >= ENOUGH_LOOKS and part >= _MOSTLY else _LIKELY


def sentences(seen: WaitedFor | None) -> list[str]:
    """What was seen of the waiting, and where it was."""
    if seen is None:
        return []
    parts = sorted(seen.kinds.items(), key=lambda kind: -kind[1])
    told = ", ".join(f"{_WORDS.get(kind, kind)} {share:.0%}" for kind, share in parts[:3])
    found = [f"{seen.looks} looks found it waiting, for: {told}"]
    return found + [f"{place.share:.0%} of them at {place.line}" for place in seen.places[:1]]


def blocked(case: Case, share: float, evidence: list[str]) -> None:
    """`share` of the time, which batches waited outside of files."""
    summary, seen = case.summary, case.summary.making.waited_for
    if share < NAMED:
        return
    counter, gain = [], None
    if seen is None:
        counter.append("where it waited was not seen: a file system over the network can wait so, too")
        confidence = _UNSEEN
    else:
        confidence = limit_of(summary, 1.0 - seen.in_files)
    best = prediction.advised_workers(summary, prediction.within_reach(summary))
    if best is not None and (seen is None or seen.outside != "lock"):  # all may wait for the same one
        gain, against = gain_of_workers(summary, best)
        counter += against
    case.name(
        "blocked_outside_files",
        share,
        confidence,
        [*evidence, *sentences(seen)],
        counter,
        gain,
        needs=("stages", "processes"),
    )
