# SPDX-License-Identifier: Apache-2.0
"""Samples wait for something other than a file, such as a sleep, a lock, a socket or another process."""

from __future__ import annotations

from feedline.diagnose.rules import gains, idle_waits, production, reading, signals
from feedline.diagnose.rules.analysis import Analysis, gain_of_workers
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.fixes import more_within_reach, with_workers
from feedline.diagnose.rules.idle_waits import ENOUGH_LOOKS, MOSTLY
from feedline.diagnose.rules.shares import NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction, what_if
from feedline.profiler.summary.figures import Summary

__all__ = ["CAUSE", "ENOUGH_LOOKS", "MOSTLY", "NAMED", "UNSEEN"]

UNSEEN = Threshold(
    0.6, "maximum confidence if system calls were not observed, because a network file system blocks in the same way"
)
_NEAR = "Send more requests concurrently, or cache responses in local files. Packing local files does not help."
# By the main reason for waiting outside of files: probe/system_calls.py.
_WORDS = {
    "sleep": "Remove the sleep, or wait for the event itself. Faster storage does not help.",
    "lock": "Hold this lock for less time, or use a separate lock in each worker: workers that share a lock wait for "
    "each other.",
    "network": _NEAR,
    "events": _NEAR,
    "process": "Send larger requests to the other process, or do its work in the worker.",
}
_ELSE = "Find out what the worker waits for at that line. Faster storage does not help."


def _evaluate(analysis: Analysis) -> Found | None:
    summary, seen = analysis.summary, analysis.summary.making.waited_for
    share = reading.of(analysis).outside
    if share < NAMED or analysis.outside_is_taken:
        return None
    against, gain = [], None
    if seen is None:
        against.append("blocking system calls were not observed, and a network file system blocks in the same way")
        confidence = float(UNSEEN)
    else:
        confidence = idle_waits.limit_of(summary, 1.0 - seen.in_files)
    best = _workers(summary)
    if best is not None:
        gain, doubts = gain_of_workers(summary, best)
        against += doubts
    if seen is None and "host" in summary.missing:
        against.append("waits for a CPU were not observed: on a busy machine, workers may wait for a CPU")
        gain = (0.0, (gain or _gain(summary, share))[1])
    evidence = [*production.evidence(analysis), *idle_waits.sentences(seen)]
    return Found(share, confidence, evidence, against, gain, production.NEEDS)


def _workers(summary: Summary) -> int | None:
    if idle_waits.outside_for(summary) == "lock":
        return None  # all workers may wait for the same lock
    return more_within_reach(summary)


def _gain(summary: Summary, _share: float) -> Gain:
    """Returns the gain if workers wait only for files."""
    waits = gains.in_files(summary, 0.0)
    return gains.of_batch(summary, what_if.without(summary, prediction.batch_of(summary), waits, 1.0))


CAUSE = Cause(
    Entry(
        code="blocked_outside_files",
        verb="diagnose",
        title="samples wait for a sleep, a lock, a socket or another process, at the line shown",
        means="Workers wait while producing a batch, but not for a file, so faster storage does not help.",
        recognised="Samples the system call in which workers block; uncertain with fewer than 24 samples, or if less "
        "than 80 % of them agree.",
        to_do="Depending on the call, issue more requests in parallel, hold the lock for less time, or remove the "
        "sleep.",
        abstains="The stages of a batch were not observed.",
        example="waiting in 66 samples: a socket 100 %; 100 % of them at train.py:24 in __getitem__().",
    ),
    rules=(Rule(210, _evaluate),),
    fix=lambda summary: with_workers(_workers(summary), _WORDS.get(idle_waits.outside_for(summary), _ELSE)),
    gain=_gain,
    workers=_workers,
    signals=(signals.WORKERS, signals.STAGES),
)
