# SPDX-License-Identifier: Apache-2.0
"""Samples wait for something that is no file: a sleep, a lock, a socket, another process."""

from __future__ import annotations

from feedline.diagnose.judging import gains, making, reading, signals, waiting
from feedline.diagnose.judging.case import Case, gain_of_workers
from feedline.diagnose.judging.cause import Cause, Found, Gain, Rule
from feedline.diagnose.judging.fixes import more_within_reach, with_workers
from feedline.diagnose.judging.shares import NAMED
from feedline.diagnose.judging.waiting import ENOUGH_LOOKS, MOSTLY
from feedline.findings import Entry, Threshold
from feedline.watching.model import prediction, what_if
from feedline.watching.summary.figures import Summary

__all__ = ["CAUSE", "ENOUGH_LOOKS", "MOSTLY", "NAMED", "UNSEEN"]

UNSEEN = Threshold(0.6, "the confidence where nobody looked: a file system over the network can wait so, too")
_NEAR = "Ask for more at a time, or keep what was fetched in files near; no packing of local files changes it."
# By what most of the waiting outside of files is for: probe/system_calls.py.
_WORDS = {
    "sleep": "Take the sleep out, or wait for what it stands for: no disk, shard or cache changes it.",
    "lock": "Hold that lock for less, or give each worker one of its own: workers that share it wait for each other.",
    "network": _NEAR,
    "events": _NEAR,
    "process": "Ask the other process for more at a time, or do its work in the worker.",
}
_ELSE = "Find out what it waits for there: no disk, shard or cache changes it."


def _books(case: Case) -> Found | None:
    summary, seen = case.summary, case.summary.making.waited_for
    share = reading.of(case).outside
    if share < NAMED or case.outside_is_taken:
        return None
    against, gain = [], None
    if seen is None:
        against.append("where it waited was not seen: a file system over the network can wait so, too")
        confidence = float(UNSEEN)
    else:
        confidence = waiting.limit_of(summary, 1.0 - seen.in_files)
    best = _workers(summary)
    if best is not None:
        gain, doubts = gain_of_workers(summary, best)
        against += doubts
    evidence = [*making.evidence(case), *waiting.sentences(seen)]
    return Found(share, confidence, evidence, against, gain, making.NEEDS)


def _workers(summary: Summary) -> int | None:
    if waiting.outside_for(summary) == "lock":
        return None  # all may wait for the same one
    return more_within_reach(summary)


def _gain(summary: Summary, _share: float) -> Gain:
    """Nothing is waited for outside of files: reading stays."""
    waits = gains.in_files(summary, 0.0)
    return gains.of_batch(summary, what_if.without(summary, prediction.batch_of(summary), waits, 1.0))


CAUSE = Cause(
    Entry(
        code="blocked_outside_files",
        verb="diagnose",
        title="samples wait for a sleep, a lock, a socket or another process, at the line that is named",
        means="While a batch is made its maker waits, and not for a file: no faster disk, shard or cache changes that.",
        recognised="Looks at the system call that the maker of a batch is in; never certain from fewer than 24 looks, "
        "or where less than 80 % of them agree.",
        to_do="By what it waits for: have more requests under way, hold the lock for less, take the sleep out.",
        abstains="The stages of a batch were not seen.",
        example="66 looks found it waiting, for: a socket 100 %; 100 % of them at train.py:24 in __getitem__().",
    ),
    rules=(Rule(210, _books),),
    fix=lambda summary: with_workers(_workers(summary), _WORDS.get(waiting.outside_for(summary), _ELSE)),
    gain=_gain,
    workers=_workers,
    signals=(signals.WORKERS, signals.STAGES),
)
