# SPDX-License-Identifier: Apache-2.0
"""Derives causes from a summary, as a pure function. `feedline explain` prints the page of each cause.

Each rule attributes a share of the loop's time to one cause, so the sum of shares never exceeds 1. ``confidence`` is
between 0 and 1; a finding is certain if its confidence is at least `CERTAIN`, which requires every signal that could
contradict the finding.
"""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose import alternatives, deaths
from feedline.diagnose.causes import by_priority, registered
from feedline.diagnose.diagnosis import Diagnosis
from feedline.diagnose.more_workers import more_workers
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause
from feedline.diagnose.rules.death import of_recording
from feedline.diagnose.rules.findings import finding_of
from feedline.diagnose.rules.shares import NAMED
from feedline.diagnose.rules.signals import WORKERS
from feedline.findings import CERTAIN, Abstention, Finding
from feedline.profiler.model import prediction
from feedline.profiler.recordings import Recording
from feedline.profiler.summary.figures import Garbage, Summary

__all__ = ["CAUSES", "CERTAIN", "evaluate", "judge"]

CAUSES = tuple(cause.code for cause in registered())


def judge(recording: Recording, summary: Summary | None, causes: tuple[Cause, ...] | None = None) -> Diagnosis:
    """Returns the cause of the run's death; if the run did not die, the causes of lost time, as `evaluate` does."""
    if not recording.crashed:
        return evaluate(summary, causes)
    known = registered() if causes is None else causes
    missing = "the run died, so its speed is not judged"
    death = deaths.judge(of_recording(recording))
    return Diagnosis(abstained=[Abstention(cause.code, missing) for cause in known], death=death)


def evaluate(summary: Summary | None, causes: tuple[Cause, ...] | None = None) -> Diagnosis:
    """Returns the causes of a run's time.

    Args:
        summary: the measurements; None if no loop was found, in which case no cause is judged.
        causes: the causes to look for; None for all registered causes.
    """
    causes = registered() if causes is None else causes
    if summary is None or summary.loop.steps == 0:
        missing = "no training loop over a DataLoader or a Feedline loader was found; see the notes"
        return Diagnosis(abstained=[Abstention(cause.code, missing) for cause in causes])
    analysis = Analysis(prediction.comparable(summary))
    for rule, cause in by_priority(causes):
        if cause.of_workers and WORKERS.name in summary.missing:
            continue
        found = rule.evaluate(analysis)
        if found is not None:
            analysis.findings.append(finding_of(analysis, cause, found))
    named = sorted((finding for finding in analysis.findings if finding.share >= NAMED), key=lambda one: -one.share)
    named = _with_garbage(summary.garbage, named, {cause.code for cause in causes if cause.collects_garbage})
    named_codes = {finding.code for finding in named}
    abstained = [one for cause in causes if cause.code not in named_codes for one in cause.abstentions(summary)]
    return Diagnosis(named, abstained, more_workers(summary, named), alternatives.of_drop_in(summary))


def _with_garbage(garbage: Garbage | None, named: list[Finding], collects: set[str]) -> list[Finding]:
    """Adds garbage collection, with its own fix, to a cause that creates many objects."""
    if garbage is None or garbage.share is None or garbage.share < NAMED or not named:
        return named
    where = next((finding for finding in named if finding.code in collects), named[0])
    sentence = (
        f"{garbage.collections} full garbage collections in Python, {garbage.each_ms:.0f} ms each, take "
        f"{garbage.share:.0%} of the time: call gc.freeze() before the loop to exempt existing objects from collection"
    )
    with_it = replace(where, evidence=(*where.evidence, sentence))
    return [with_it if finding is where else finding for finding in named]
