# SPDX-License-Identifier: Apache-2.0
"""Chooses the first change to make: a change with a measured gain, or else the fix of the largest cause.

Each change has one gain, relative to the loop's batches per second. A report prints the answer once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from feedline.diagnose import causes
from feedline.diagnose.diagnosis import Diagnosis
from feedline.diagnose.rules import contradictions
from feedline.diagnose.rules.cause import Gain
from feedline.diagnose.trial import Trial, prefetching
from feedline.findings import Finding, gain_words
from feedline.profiler.experiments import Experiments
from feedline.profiler.intervals import GAIN
from feedline.profiler.model import prediction, what_if
from feedline.profiler.summary.figures import DROP_IN, Summary

USE_DROP_IN = "use `from feedline import DataLoader`"
MEASURED, MEASURED_LOADER, PREDICTED, UNKNOWN = "measured", "measured loader", "predicted", "unknown"
_BASIS = {
    MEASURED: "measured in a second run",
    MEASURED_LOADER: "predicted from the loader's measured rates",
    PREDICTED: "predicted",
}


@dataclass(frozen=True)
class Answer:
    """The change to make first.

    Attributes:
        change: the change as an instruction, without a full stop.
        loader: the loader to change, such as "the loader over ImageFolder with batch size 32".
        gain: [low, high], the relative gain of the loop in batches per second; None if unknown.
        basis: the source of the gain: `MEASURED`, `MEASURED_LOADER`, `PREDICTED` or `UNKNOWN`.
        settings: loader arguments that make the change; empty if the change needs no arguments.
        is_drop_in: whether the change is to use Feedline's DataLoader.
    """

    change: str
    loader: str
    gain: Gain | None = None
    basis: str = UNKNOWN
    settings: Mapping[str, Any] | None = None
    is_drop_in: bool = False

    @property
    def text(self) -> str:
        """The answer as one line."""
        if self.gain is None:
            return f"{self.change}, for {self.loader}"
        return f"{self.change}: {gain_words(self.gain, 'batches')} ({_BASIS[self.basis]}), for {self.loader}"

    def as_dict(self) -> dict[str, Any]:
        """Returns the answer as the JSON object described in docs/diagnose-method.md."""
        return {
            "text": self.text,
            "change": self.change,
            "loader": self.loader,
            "gain": None if self.gain is None else [round(end, 3) for end in self.gain],
            "basis": self.basis,
        }


def choose(
    summary: Summary, diagnosis: Diagnosis, trial: Trial | None = None, tried: Experiments | None = None
) -> Answer:
    """Returns the change to make first; `tried` is None if no experiments were run.

    Changes with a measured gain take precedence over all predictions. The measured change with the largest gain is
    chosen. Without a measured gain, Feedline's DataLoader is proposed if it may help and was not tried. If other
    programs used the CPUs and a measurement contradicts the largest cause, only a new measurement is proposed.
    """
    loader = name_of(summary)
    shown = [one for one in _measured(summary, diagnosis, trial, tried, loader) if one.gain and _is_worth(one.gain)]
    if shown:
        return max(shown, key=lambda one: (one.basis == MEASURED, _middle(one.gain or (0.0, 0.0))))
    return _predicted(summary, diagnosis, loader)


def name_of(summary: Summary) -> str:
    """Describes a run's loader by its dataset and batch size."""
    dataset, batch = summary.loader.get("dataset"), summary.loader.get("batch_size")
    parts = ["the loader", f"over {dataset}" if dataset else "", f"with batch size {batch}" if batch else ""]
    return " ".join(part for part in parts if part)


def drop_in_gain(summary: Summary) -> Gain | None:
    """Returns the loop's gain with Feedline's DataLoader, or None if no gain of the loader was measured."""
    return next((one.gain for one in what_if.what_if(summary) if one.is_drop_in), None)


def settings_of(summary: Summary, finding: Finding) -> dict[str, Any] | None:
    """Returns the loader arguments that a finding's fix sets, or None if the fix is a different kind of change."""
    cause = causes.named(finding.code)
    return None if cause is None else cause.change(summary)


def may_use_drop_in(summary: Summary, finding: Finding) -> bool:
    """Whether Feedline's DataLoader may remove the cause of the finding."""
    cause = causes.named(finding.code)
    return not summary.native and cause is not None and cause.drop_in(summary)


def _measured(
    summary: Summary, diagnosis: Diagnosis, trial: Trial | None, tried: Experiments | None, loader: str
) -> Iterator[Answer]:
    if trial is not None and trial.measured_low is not None and trial.measured_high is not None:
        gain = (trial.measured_low, trial.measured_high)
        yield Answer(f"set {arguments(trial.settings)}", loader, gain, MEASURED, trial.settings)
    if (gained := drop_in_gain(summary)) is not None:
        yield Answer(USE_DROP_IN, loader, gained, MEASURED_LOADER, is_drop_in=True)
    known = prediction.at_its_best(summary)
    if summary.workers in known.ladder.rungs:
        workers = prediction.measured_above(summary, known.ladder.rungs) or prediction.fewer_workers(summary)
        if workers is not None:
            yield _workers(summary, diagnosis, workers, loader)
    found = None if tried is None else prefetching(summary, tried.comparisons, summary.workers)
    if found is not None:
        factor, low, high = found
        settings = {"prefetch_factor": factor}
        yield Answer(f"set {arguments(settings)}", loader, (low - 1, high - 1), MEASURED_LOADER, settings)


def _workers(summary: Summary, diagnosis: Diagnosis, workers: int, loader: str) -> Answer:
    """Uses the gain of the finding that advises this number of workers, or else the predicted gain."""
    settings = {"num_workers": workers}
    advised = (one.gain for one in diagnosis.verdicts if settings_of(summary, one) == settings)
    known = prediction.comparable_with(summary, workers)
    gain = next(advised, None) or prediction.gain(known, prediction.cycle_ms(known, workers))
    return Answer(f"set {arguments(settings)}", loader, gain, MEASURED_LOADER, settings)


def _predicted(summary: Summary, diagnosis: Diagnosis, loader: str) -> Answer:
    waits = f"the loop waits for its loader {summary.waits.loader:.0%} of the time"
    named = [one for one in diagnosis.verdicts if one.code != "compute_bound"]
    if not named:
        return Answer(f"leave the loader unchanged, as {waits}", loader)
    first = max(named, key=lambda one: (_is_worth(one.gain), one.share))
    if first.confidence <= contradictions.MOST and summary.host.contended:
        others = summary.host.sharing * (summary.host.others_cpus or 0.0)
        return Answer(f"measure again without the other programs, which used {others:.1f} CPUs", loader)
    settings = settings_of(summary, first)
    change = f"set {arguments(settings)}" if settings else _instruction(first)
    gain = first.gain if first.gain[1] > 0 else None
    if DROP_IN not in summary.ladder.tried and may_use_drop_in(summary, first):
        other = ""
        if settings and gain is not None:
            other = f", or {change} ({_BASIS[PREDICTED]}: {gain_words(gain, 'batches')})"
        change = f"{USE_DROP_IN} (gain not measured){other}"
        return Answer(change, loader, settings=settings, is_drop_in=True)
    return Answer(change, loader, gain, UNKNOWN if gain is None else PREDICTED, settings)


def _instruction(finding: Finding) -> str:
    """Returns the first sentence of the fix without its full stop."""
    fix = finding.fix.split(". ")[0].rstrip(".")
    return fix[:1].lower() + fix[1:]


def arguments(settings: Mapping[str, Any]) -> str:
    """Formats loader arguments, such as ``num_workers=4``."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _is_worth(gain: Gain) -> bool:
    return gain[0] > 0 and _middle(gain) > GAIN - 1


def _middle(gain: Gain) -> float:
    return (gain[0] + gain[1]) / 2
