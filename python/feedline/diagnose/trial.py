# SPDX-License-Identifier: Apache-2.0
"""Tries the proposed change: runs the command again with different loader arguments and measures the gain.

Only changes to a DataLoader's arguments are applied; other changes are left to the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from feedline.diagnose import causes
from feedline.diagnose.diagnosis import Diagnosis
from feedline.profiler import apply, session
from feedline.profiler.experiments import Comparison
from feedline.profiler.intervals import is_known, rate_interval
from feedline.profiler.model import prediction, what_if
from feedline.profiler.probe import events
from feedline.profiler.session import Change, Recording
from feedline.profiler.summary import timeline
from feedline.profiler.summary.figures import Summary

_PREFETCH = "prefetch_factor="
_WORTH = 1.02  # minimum ratio of batches per second
_NOTHING = 0.1  # maximum width of an interval that contains zero and still counts as confirming the prediction
_SHORTEST = 0.01  # minimum share of a cycle that remains
_MANY_ROUNDS = 4  # rounds of workers


@dataclass(frozen=True)
class Proposal:
    settings: dict[str, Any] = field(default_factory=dict)
    predicted: tuple[float, float] = (0.0, 0.0)  # relative gain in batches per second, [low, high]
    left: tuple[str, ...] = ()  # causes that no loader argument can fix


@dataclass(frozen=True)
class Trial:
    """A prediction and its measured outcome. Gains are relative changes in the loop's steps per second."""

    settings: dict[str, Any]
    predicted: tuple[float, float]
    left: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)  # settings that the loader rejected, and why
    measured: float | None = None
    measured_low: float | None = None  # 95 % interval
    measured_high: float | None = None
    not_tried: str | None = None

    @property
    def came_true(self) -> bool | None:
        """Whether the measured and predicted intervals overlap; None if unmeasured or undecided."""
        if self.measured_low is None or self.measured_high is None or self.undecided:
            return None
        return self._meets(self.measured_low, self.measured_high)

    @property
    def undecided(self) -> bool:
        """Whether the measurement is consistent both with the prediction and with no gain."""
        if (
            self.measured_low is None
            or self.measured_high is None
            or not self._meets(self.measured_low, self.measured_high)
        ):
            return False
        return self.measured_low <= 0 and self.measured_high - self.measured_low > _NOTHING

    def _meets(self, measured_low: float, measured_high: float) -> bool:
        low, high = self.predicted
        return measured_high >= low and measured_low <= high

    def as_dict(self) -> dict[str, Any]:
        outcome = {"came_true": self.came_true, "undecided": self.undecided}
        return {**asdict(self), "predicted": list(self.predicted), **outcome}

    def lines(self) -> list[str]:
        lines = []
        given = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        if self.not_tried is not None:
            lines.append(f"  not applied: {self.not_tried}")
        elif self.measured is None or self.measured_low is None or self.measured_high is None:
            lines.append(f"  applied {given}: the second run had too few steps to measure")
        else:
            low, high = self.predicted
            short = self.measured < low
            word = "confirmed" if self.came_true else f"not confirmed: the gain was {'smaller' if short else 'larger'}"
            word = "undecided, as the two runs vary too much" if self.undecided else word
            lines.append(
                f"  applied {given}; {word}: predicted {low:+.0%} to {high:+.0%}, measured {self.measured:+.0%} "
                f"[{self.measured_low:+.0%}, {self.measured_high:+.0%}]"
            )
        lines += [f"    {name} was rejected: {why}" for name, why in self.refused.items()]
        if self.left:
            lines.append(f"    change these yourself, because they are not loader arguments: {', '.join(self.left)}")
        return lines


def propose(summary: Summary, diagnosis: Diagnosis, recording: Recording) -> Proposal:
    """Combines those changes of all verdicts that a DataLoader's arguments can express."""
    settings: dict[str, Any] = {}
    gains: list[tuple[float, float]] = []
    left = []
    for finding in diagnosis.verdicts:
        cause = causes.named(finding.code)
        change = None if cause is None else cause.change(summary)
        if change is None:
            if finding.code != "compute_bound":
                left.append(finding.code)
        elif not set(change) & set(settings):  # if both set the number of workers, the larger share wins
            settings |= change
            gains.append(finding.gain)
    fewer = prediction.fewer_workers(summary)
    if fewer is not None and "num_workers" not in settings:
        settings["num_workers"] = fewer
        known = prediction.comparable(summary)
        gains.append(prediction.gain(known, prediction.cycle_ms(known, fewer)))
    low, high = (1 + _together(ends) for ends in zip((0.0, 0.0), *gains, strict=True))
    compared = recording.experiments.comparisons if recording.experiments else []
    found = prefetching(summary, compared, settings.get("num_workers", summary.workers))
    if found is not None:
        settings["prefetch_factor"], least, most = found
        low, high = low * least, high * most
    return Proposal(settings, (round(low - 1, 3), round(high - 1, 3)), tuple(left))


def prefetching(summary: Summary, comparisons: Sequence[Comparison], workers: int) -> tuple[int, float, float] | None:
    """Returns the `prefetch_factor` with a measured gain, and the [low, high] ratio of steps per second.

    Each comparison lasts a fraction of a second, and one in twenty shows a gain by chance, so the model must agree.
    """
    for one in comparisons:
        if one.kept and one.change.startswith(_PREFETCH):
            factor = int(one.change.removeprefix(_PREFETCH))
            modelled = what_if.of_prefetching(summary, workers, factor)
            if modelled > _WORTH:
                return factor, max(one.ratio_low, 1.0), min(one.ratio_high, modelled * prediction.LONGER)
    return None


def _together(gains: Sequence[float]) -> float:
    """Combines gains. Each change removes a different part of the time, so times rather than gains are added."""
    gone = sum(gain / (1 + gain) for gain in gains)
    return 1 / max(1 - gone, _SHORTEST) - 1


def run(command: Sequence[str], summary: Summary, diagnosis: Diagnosis, recording: Recording) -> Trial:
    """Runs `command` again with the proposed settings, if there are any. Raises CommandError."""
    proposal = propose(summary, diagnosis, recording)
    reason = refusal(summary, recording, proposal)
    if reason is not None:
        return Trial(proposal.settings, proposal.predicted, proposal.left, not_tried=reason)
    second = session.run(command, change=Change(proposal.settings, summary.loader))
    refused = apply.refused_by_all(second.applied)
    if second.returncode != 0:
        reason = f"the second run failed with exit status {second.returncode}"
    else:
        reason = refused_whole(second, proposal.settings)
    measured, low, high = gain(recording, second) if reason is None else (None, None, None)
    return Trial(proposal.settings, proposal.predicted, proposal.left, refused, measured, low, high, reason)


def refusal(summary: Summary, recording: Recording, proposal: Proposal) -> str | None:
    """Returns why no settings are tried, or None."""
    if recording.returncode != 0:
        return "the command failed"
    if summary.loader.get("native"):
        return "the loader is a feedline.Loader, which has different arguments"
    if not proposal.settings:
        return "no loader argument would improve this run"
    return None


def refused_whole(changed: Recording, settings: Mapping[str, Any]) -> str | None:
    """Returns why none of the settings took effect in the second run, or None if some did."""
    if not changed.applied:
        return "the second run did not use the same loader"
    refused = apply.refused_by_all(changed.applied)
    if "loader" in refused:
        return refused["loader"]
    return "; ".join(dict.fromkeys(refused.values())) if set(settings) <= set(refused) else None


def gain(before: Recording, after: Recording) -> tuple[float | None, float | None, float | None]:
    """Returns (relative gain, low, high) in steps per second, comparing the longest loop of each run."""
    rates = [steps_per_s(one) for one in (before, after)]
    if rates[0] is None or rates[1] is None:
        return None, None, None
    (old, old_low, old_high), (new, new_low, new_high) = rates[0], rates[1]
    return new / old - 1, new_low / max(old_high, 1e-9) - 1, new_high / max(old_low, 1e-9) - 1


def steps_per_s(recording: Recording) -> tuple[float, float, float] | None:
    """Returns (mean, low, high) of the steps per second of the longest loop, or None if it had too few steps.

    All waits are included except the wait for the first batch. The first batch of each worker is produced during that
    wait and is not counted, as in the experiments: in a short loop with many workers, these batches would be a large
    part of all batches.
    """
    loops = timeline.loops_of(recording.processes)
    summary = timeline.summarise(recording)
    if not loops or summary is None or summary.loop.steps < 3:
        return None
    done, seconds = [(0.0, 0.0)], 0.0
    for one in loops[0].weighted_events:
        if one.event.kind == events.STEP or done[-1][0]:
            seconds += one.wall_ns / 1e9
        if one.event.kind == events.STEP:
            done.append((seconds, float(one.times)))
    done = _without_first(done, summary.workers)
    if len(done) < 3:
        return None
    rate = rate_interval(done)
    return rate if is_known(*rate[1:]) else None


def _without_first(done: list[tuple[float, float]], workers: int) -> list[tuple[float, float]]:
    """Drops the steps before each worker has produced a batch, unless the loop is too short."""
    count, whole = 0.0, sum(times for _, times in done)
    for at, (_, times) in enumerate(done):
        count += times
        if count >= workers:
            return done[at:] if whole >= _MANY_ROUNDS * workers else done
    return done
