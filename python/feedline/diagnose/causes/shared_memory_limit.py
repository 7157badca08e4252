# SPDX-License-Identifier: Apache-2.0
"""/dev/shm, through which workers pass tensors, is nearly full, so the next batch may crash the run."""

from __future__ import annotations

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.summary.figures import Summary

FULL = Threshold(0.9, "peak use of /dev/shm, as a fraction, above which another batch may not fit")


def _evaluate(analysis: Analysis) -> Found | None:
    used = analysis.summary.host.shared_memory_used
    if used is None or used < FULL:
        return None
    share, analysis.handover = analysis.handover, 0.0
    if share < NAMED:  # reported whatever its cost, as it may crash the run at any time
        share = min(NAMED, analysis.step)
        analysis.step -= share
    return Found(share, 0.7, [f"/dev/shm, through which workers pass tensors, was {used:.0%} full"])


def _gain(summary: Summary, share: float) -> Gain:
    """Reports the risk. The gain is predicted from the time spent passing batches, or is zero."""
    return gains.of_share(summary, share) if summary.waits.handover >= share else (0.0, 0.0)


CAUSE = Cause(
    Entry(
        code="shared_memory_limit",
        verb="diagnose",
        title="the script's own `/dev/shm` is nearly full: the next batch may crash the run",
        means="torch's workers store each tensor in a file in /dev/shm. If /dev/shm is full, a worker is killed by a "
        "bus error. By default, a container's /dev/shm has only 64 MB.",
        recognised="More than 90 % of /dev/shm was in use during the run. The finding is reported even if the run "
        "did not slow down.",
        to_do="Enlarge /dev/shm, or keep fewer batches in flight.",
        abstains="The host's counters were not read, because the run was too short.",
        example="/dev/shm, through which workers pass tensors, was 97 % full.",
    ),
    rules=(Rule(60, _evaluate),),
    fix=Fix("Enlarge /dev/shm (docker run --shm-size), or use fewer workers and a smaller prefetch_factor."),
    gain=_gain,
    signals=(signals.HOST,),
)
