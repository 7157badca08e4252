# SPDX-License-Identifier: Apache-2.0
"""/dev/shm is nearly full: workers hand over tensors through it, and the next batch may end the run."""

from __future__ import annotations

from feedline.diagnose.judging import gains, signals
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Cause, Found, Gain, Rule
from feedline.diagnose.judging.fixes import Fix
from feedline.diagnose.judging.shares import NAMED
from feedline.findings import Entry, Threshold
from feedline.watching.summary.figures import Summary

FULL = Threshold(0.9, "of /dev/shm, used at any time: a batch more may not fit")


def _books(case: Case) -> Found | None:
    used = case.summary.host.shared_memory_used
    if used is None or used < FULL:
        return None
    share, case.handover = case.handover, 0.0
    if share < NAMED:  # it may stop the run at any time, whatever it costs now
        share = min(NAMED, case.step)
        case.step -= share
    return Found(share, 0.7, [f"/dev/shm, through which workers hand over tensors, was {used:.0%} full"])


def _gain(summary: Summary, share: float) -> Gain:
    """It is named for what it may do. What it takes is hand-over, or nothing."""
    return gains.of_share(summary, share) if summary.waits.handover >= share else (0.0, 0.0)


CAUSE = Cause(
    Entry(
        code="shared_memory_limit",
        verb="diagnose",
        title="the script's own `/dev/shm` is nearly full: the next batch may end the run",
        means="torch's workers put each tensor into a file of /dev/shm. Where it is full, a worker dies of a bus "
        "error; containers have 64 MB of it unless told otherwise.",
        recognised="More than 90 % of it used at any time of the run. It is named whatever it costs now.",
        to_do="Enlarge it, or have fewer batches on their way.",
        abstains="The host's counters were not read: the run was too short.",
        example="/dev/shm, through which workers hand over tensors, was 97 % full.",
    ),
    rules=(Rule(60, _books),),
    fix=Fix("Enlarge /dev/shm (docker run --shm-size), or fewer workers and a smaller prefetch_factor."),
    gain=_gain,
    signals=(signals.HOST,),
)
