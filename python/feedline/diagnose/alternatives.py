# SPDX-License-Identifier: Apache-2.0
"""Describes what the measurements show about other worker counts and Feedline's loader.

Each sentence is derived only from the measurements and the comparisons shown in the table: a difference within the
intervals is reported as undecided, and advice is not based on a measurement without an interval.
"""

from __future__ import annotations

from feedline.findings import gain_words
from feedline.profiler.intervals import GAIN, Shown, shown
from feedline.profiler.model import prediction, what_if
from feedline.profiler.summary.figures import DROP_IN, Summary


def of_workers(summary: Summary) -> str | None:
    """Returns a sentence that states whether more or fewer workers help, or None if the current number was measured too
    imprecisely.
    """
    present, optimistic = summary.workers, prediction.at_its_best(summary)
    rungs = optimistic.ladder.rungs
    if present not in rungs or len(rungs) < 2:
        return None
    proof = "measured, loader only: " + "; ".join(
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
    # Includes imprecise measurements: a low end above the present rate is evidence all the same.
    intervals = summary.ladder.rung_intervals
    more += [Shown.BETTER for workers in intervals if workers > present and intervals[workers][0] > rungs[present]]
    if Shown.BETTER in more:
        rate = 1000 / max(prediction.current_ms(summary), 1e-9)
        return f"more {summary.makers} will not help the loop, which consumes {rate:.1f} batches/s; {proof}"
    if all(one is Shown.NOT_BETTER for one in more):
        return f"more {summary.makers} will not help; {proof}"
    return f"it is undecided whether more {summary.makers} help, because the intervals overlap; {proof}"


def of_drop_in(summary: Summary) -> str | None:
    """Returns a sentence with the gain of replacing torch's loader with Feedline's, or None if no gain was shown.

    The sentence states the gain of the training loop, predicted from the measured rates of both loaders, or the gain of
    the loader itself if no batch in the run was observed.
    """
    tried = summary.ladder.tried.get(DROP_IN)
    if tried is None:
        return None
    ratio, low, high = tried
    if low <= 1 or ratio <= GAIN:
        return None
    change = "`from feedline import DataLoader` instead of torch's"
    in_loop = next((one.gain for one in what_if.what_if(summary) if one.is_drop_in), None)
    if in_loop is None:
        return f"{change}: {ratio:.2f} times as many batches [{low:.2f}, {high:.2f}], measured without the loop"
    return f"{change}: {gain_words(in_loop, 'batches')} in the loop, predicted from the loader's measured rates"


def compared(summary: Summary, workers: int) -> Shown:
    """Compares a measured number of workers with the current number."""
    intervals = summary.ladder.rung_intervals
    rates = summary.ladder.rungs[workers], summary.ladder.rungs[summary.workers]
    one, present = (intervals.get(w, (r, r)) for w, r in zip((workers, summary.workers), rates, strict=True))
    return shown((rates[0], *one), (rates[1], *present))
