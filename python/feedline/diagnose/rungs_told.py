# SPDX-License-Identifier: Apache-2.0
"""What the measured rungs say of other numbers of workers and of Feedline's loader, in words.

Each sentence follows from the rungs and from nothing else, by the same comparisons that stand beside them in the table:
what is not shown beyond its interval is said to be undecided, and a rung without an interval supports no advice.
"""

from __future__ import annotations

from feedline.watching.intervals import GAIN, Shown, shown
from feedline.watching.model import prediction, what_if
from feedline.watching.summary.figures import DROP_IN, Summary


def of_workers(summary: Summary) -> str | None:
    """Whether more workers help, or fewer; None: the present number was not measured well enough to compare with."""
    present, optimistic = summary.workers, prediction.at_its_best(summary)
    rungs = optimistic.ladder.rungs
    if present not in rungs or len(rungs) < 2:
        return None
    proof = "measured, the loader alone: " + "; ".join(
        f"{summary.counted(workers)}: {'' if workers in summary.ladder.rungs else 'at most '}{rate:.1f} batches/s"
        for workers, rate in sorted(rungs.items())
    )
    best = prediction.measured_above(summary, rungs)
    if best is not None:
        return f"{summary.counted(best)} instead of {present} would help; {proof}"
    fewer = prediction.fewer_workers(summary)
    if fewer is not None:
        return f"{summary.counted(fewer)} instead of {present} would help; {proof}"
    if present not in summary.ladder.rungs:
        return None
    more = [compared(summary, workers) for workers in rungs if workers > present]
    if not more:
        return None
    intervals = summary.ladder.rung_intervals  # wide ones too: their rate tells little, and their low end this much
    more += [Shown.BETTER for workers in intervals if workers > present and intervals[workers][0] > rungs[present]]
    if Shown.BETTER in more:
        rate = 1000 / max(prediction.current_ms(summary), 1e-9)
        return f"more {summary.makers} will not help the loop, which takes {rate:.1f} batches/s; {proof}"
    if all(one is Shown.NOT_BETTER for one in more):
        return f"more {summary.makers} will not help; {proof}"
    return f"whether more {summary.makers} help is not decided, as the intervals overlap; {proof}"


def of_drop_in(summary: Summary) -> str | None:
    """What Feedline's loader in the place of torch's gave, where it was shown to give more, or less."""
    tried = summary.ladder.tried.get(DROP_IN)
    if tried is None:
        return None
    ratio, low, high = tried
    figures = f"{ratio:.2f} times the batches [{low:.2f}, {high:.2f}]"
    if low > 1 and ratio > GAIN:
        in_loop = next((one.gain for one in what_if.what_if(summary) if one.change.startswith(DROP_IN)), None)
        loop = "" if in_loop is None else f"; the loop: {in_loop[0]:+.0%} to {in_loop[1]:+.0%} batches/s, predicted"
        return f"`from feedline import DataLoader` instead of torch's: measured, the loader alone: {figures}{loop}"
    return None


def compared(summary: Summary, workers: int) -> Shown:
    """A rung beside the present one."""
    intervals = summary.ladder.rung_intervals
    rates = summary.ladder.rungs[workers], summary.ladder.rungs[summary.workers]
    one, present = (intervals.get(w, (r, r)) for w, r in zip((workers, summary.workers), rates, strict=True))
    return shown((rates[0], *one), (rates[1], *present))
