# SPDX-License-Identifier: Apache-2.0
"""Formats a diagnosis as JSON and as text for a terminal."""

from __future__ import annotations

import signal
from collections.abc import Set
from typing import Any

from feedline import cost
from feedline.diagnose import alternatives, answer, deaths, gpu_text
from feedline.diagnose.diagnosis import Diagnosis
from feedline.diagnose.experiments import text
from feedline.diagnose.precision_trial import PrecisionTrial
from feedline.diagnose.trial import Trial
from feedline.findings import Finding, formats
from feedline.profiler.command import other_interpreter
from feedline.profiler.model import prediction
from feedline.profiler.model.what_if import by_workers_and_depth, what_if
from feedline.profiler.probe import events
from feedline.profiler.recordings import Recording
from feedline.profiler.summary import timeline
from feedline.profiler.summary.figures import Summary
from feedline.record import chain

SCHEMA = "feedline.diagnosis/1"
_BAR = 40
_NO_LOOP = "no loop over a DataLoader or a Feedline loader was found"
_PREFILLED = 0.25  # share of the steps from which on batches loaded in advance are mentioned
_UNTRIED = "other settings were not tried: run without --quick to compare them with the current settings"
_UNTRIED_DROP_IN = (
    "`from feedline import DataLoader` and other settings were not tried: run without --quick to "
    "compare them with the current settings"
)


def notes_of(recording: Recording, summary: Summary | None) -> list[str]:
    """Returns one sentence for each missing observation."""
    notes = list(recording.notes)
    if recording.pythons == 0:
        notes.append(
            "no Python process of the command loaded the probe: the command does not run Python, or runs Python with "
            "-I, -E or -S, which ignore PYTHONPATH"
        )
    elif summary is None and not recording.crashed:
        notes.append("no process iterated over a torch DataLoader or a Feedline loader")
    if recording.returncode < 0:
        notes.append(f"the command was terminated by {_signal_name(-recording.returncode)}{_rest(recording)}")
    elif recording.returncode > 0:
        notes.append(f"the command failed with exit status {recording.returncode}{_rest(recording)}")
        if other := other_interpreter(recording.command):
            notes.append(other)
    notes += _prefilled(summary) if summary is not None and not recording.crashed else []
    notes += gpu_text.hints(summary) if summary is not None else []
    if summary is not None and recording.experiments is not None and not timeline.is_of(recording, summary.loader):
        notes.append("the experiments used the loader whose loop began first, not the loader of this report")
    if recording.dropped:
        notes.append(
            f"events of {recording.dropped} early worker processes were dropped; only those of the latest processes "
            "are stored"
        )
    return notes


def _prefilled(summary: Summary) -> list[str]:
    """Returns a note if many steps took batches that torch's workers loaded during the first wait of an epoch, which is
    not part of the mean wait.
    """
    loop, workers = summary.loop, summary.workers
    if summary.native or not workers or not loop.epochs:
        return []
    in_advance = min(workers * int(summary.loader.get("prefetch_factor") or 2) * loop.epochs, loop.steps)
    if in_advance < _PREFILLED * loop.steps:
        return []
    return [
        f"up to {in_advance} of the {loop.steps} steps took batches that the workers loaded in advance, at the start "
        "of an epoch (num_workers x prefetch_factor); with longer epochs, the loop may wait longer per batch"
    ]


def _rest(recording: Recording) -> str:
    return ": its speed is not judged" if recording.crashed else ": the data recorded so far is used"


def as_json(
    recording: Recording,
    summary: Summary | None,
    diagnosis: Diagnosis,
    trial: Trial | None = None,
    price: cost.Price = cost.NO_PRICE,
    precision: PrecisionTrial | None = None,
) -> dict[str, Any]:
    """Returns the JSON object described in docs/diagnose-method.md."""
    measured, experiments = summary or Summary(), recording.experiments
    return {
        "schema": SCHEMA,
        "command": recording.command,
        "exit_status": recording.returncode,
        "wall_s": (recording.end_ns - recording.begin_ns) / 1e9,
        "answer": _answer_as_dict(recording, summary, diagnosis, trial),
        **diagnosis.as_dict(),
        "step_ms": measured.loop.step_ms,
        "wait_ms": measured.loop.wait_ms,
        "wait_percentiles_ms": measured.loop.wait_percentiles_ms,
        "overhead_share": measured.profiling.overhead_share,
        "summary": None if summary is None else summary.as_dict(),
        "experiments": None if experiments is None else experiments.as_dict(),
        "what_if": [
            {"workers": workers, "batches_per_s": rate} for workers, rate in _what_if(summary, recording).items()
        ],
        "changes": [
            {
                "change": change.change,
                "batches_per_s": [round(change.low, 3), round(change.high, 3)],
                "gain": [round(gain, 3) for gain in change.gain],
            }
            for change in (what_if(measured) if diagnosis.death is None else ())
        ],
        "what_if_by_depth": [
            {"workers": workers, "prefetch_factor": depth or None, "batches_per_s": round(rate, 3)}
            for workers, row in by_workers_and_depth(
                measured, () if summary is None else _advised(measured, diagnosis, None)
            ).items()
            for depth, rate in row.items()
        ],
        "files": None if recording.files is None else recording.files.as_dict(),
        "cost": cost.as_dict(*_spent(summary, diagnosis, price)),
        "applied": None if trial is None else trial.as_dict(),
        "precision": None if precision is None else precision.as_dict(),
        "notes": notes_of(recording, summary),
    }


def as_text(
    recording: Recording,
    summary: Summary | None,
    diagnosis: Diagnosis,
    trial: Trial | None = None,
    price: cost.Price = cost.NO_PRICE,
    precision: PrecisionTrial | None = None,
) -> str:
    if diagnosis.death is not None:
        return _text_of_death(recording, summary, diagnosis.death)
    first = None if summary is None else _answer(recording, summary, diagnosis, trial)
    lines = ["", f"feedline diagnose: {_NO_LOOP if first is None else first.text}"]
    if summary is not None:
        lines += _measured(summary, _loaders(recording))
        lines += ["", *(f"  {line}" for line in chain.lines(chain.of_diagnosis(summary.as_dict())))]
    if diagnosis.drop_in and not (first is not None and first.is_drop_in):
        lines += ["", f"  {diagnosis.drop_in}"]
    for finding in diagnosis.verdicts:
        lines += ["", f"  {finding.share:>4.0%}  {finding.code}  ({finding.confidence_text})"]
        lines += [f"        {sentence}" for sentence in finding.sentences]
        lines += [f"        -> {finding.fix}", *_gain(finding, summary, diagnosis)]
    if summary is not None and not diagnosis.verdicts:
        lines += [
            "",
            f"  no single cause accounts for 5 % of the time; the loop waits for its loader {summary.waits.loader:.0%}",
        ]
    if diagnosis.more_workers and not _is_repeated(summary, diagnosis):
        lines += ["", f"  {diagnosis.more_workers}"]
    if summary is not None and recording.experiments is None:
        lines += ["", f"  {_UNTRIED if summary.native else _UNTRIED_DROP_IN}"]
    if recording.experiments is not None:
        workers = 0 if summary is None or summary.native else summary.workers
        lines += ["", *text.lines(recording.experiments, _what_if(summary, recording), workers)]
    if summary is not None:
        lines += _changes(summary, _settings_with_gain(summary, diagnosis, first))
        lines += _by_depth(summary, _advised(summary, diagnosis, first))
    if trial is not None:
        lines += ["", *trial.lines()]
    if precision is not None:
        lines += ["", *precision.lines()]
    spent = cost.lines(*_spent(summary, diagnosis, price))
    if spent:
        lines += ["", "  cost"] + [f"    {line}" for line in spent]
    abstained = [(a.code, a.missing) for a in diagnosis.abstained] if summary is not None else []
    if abstained:
        lines += ["", "  not judged:"] + [f"    {cause}: {missing}" for cause, missing in abstained]
    notes = notes_of(recording, summary)
    if notes:
        lines += ["", "  notes:"] + [f"    {note}" for note in notes]
    return "\n".join(lines) + "\n"


def _text_of_death(recording: Recording, summary: Summary | None, death: deaths.Verdict) -> str:
    lines = ["", f"feedline diagnose: {death.text}", "", *death.lines()]
    lines += ["", "  notes:", *(f"    {note}" for note in notes_of(recording, summary))]
    return "\n".join(lines) + "\n"


def _answer_as_dict(
    recording: Recording, summary: Summary | None, diagnosis: Diagnosis, trial: Trial | None
) -> dict[str, Any] | None:
    if diagnosis.death is not None:
        return answer.Answer(diagnosis.death.died.fixes[0].rstrip("."), "").as_dict() | {"text": diagnosis.death.text}
    return None if summary is None else _answer(recording, summary, diagnosis, trial).as_dict()


def _answer(recording: Recording, summary: Summary, diagnosis: Diagnosis, trial: Trial | None) -> answer.Answer:
    return answer.choose(summary, diagnosis, trial, recording.experiments)


def _gain(finding: Finding, summary: Summary | None, diagnosis: Diagnosis) -> list[str]:
    """Returns the predicted gain of a finding's fix, unless the fix is Feedline's loader and its gain was measured."""
    gain = finding.gain_text("batches")
    if finding.code == "compute_bound" or not gain or summary is None:
        return []
    settings = answer.settings_of(summary, finding)
    if settings is None and diagnosis.drop_in and answer.may_use_drop_in(summary, finding):
        return []
    which = "" if not settings else f" with {answer.arguments(settings)}"
    return [f"        predicted gain{which}: {gain}, if nothing else changes"]


def _is_repeated(summary: Summary | None, diagnosis: Diagnosis) -> bool:
    """Whether a finding already recommends a number of workers and predicts its gain, and no measurement adds to
    this.
    """
    if summary is None or alternatives.of_workers(summary) is not None:
        return False
    return any("num_workers" in (answer.settings_of(summary, one) or {}) for one in diagnosis.verdicts)


def _settings_with_gain(summary: Summary, diagnosis: Diagnosis, first: answer.Answer | None) -> set[str]:
    """Returns the settings whose gain the report has already stated, such as "num_workers=4"."""
    given = [answer.settings_of(summary, one) for one in diagnosis.verdicts]
    given.append(None if first is None or first.settings is None else dict(first.settings))
    return {answer.arguments({name: value}) for one in given if one for name, value in one.items()}


def _spent(
    summary: Summary | None, diagnosis: Diagnosis, price: cost.Price
) -> tuple[cost.Spent | None, list[dict[str, Any]], cost.Price]:
    measured = {} if summary is None else summary.as_dict()
    return cost.of_run(measured, price), [formats.as_cause(finding) for finding in diagnosis.verdicts], price


def _what_if(summary: Summary | None, recording: Recording) -> dict[int, float | None]:
    """Returns the loader's predicted batches per second for each measured number of workers."""
    tried = recording.experiments
    if summary is None or tried is None or tried.warm_because is not None:
        return {}
    if not timeline.is_of(recording, summary.loader):
        return {}
    return {rung.workers: prediction.loader_rate(summary, rung.workers) for rung in tried.rungs}


def _changes(summary: Summary, given: Set[str] = frozenset()) -> list[str]:
    """Formats the predicted changes, except those whose gain was stated before."""
    changes = [
        one for one in what_if(summary) if one.change not in given and (one.high < one.now or not one.is_drop_in)
    ]
    if not changes:
        return []
    own = (
        f"with {summary.host.cpus:.3g} CPUs for this run only; {changes[0].now:.1f} batches/s with the current settings"
    )
    lines = ["", f"  what if (predicted; {own})"]
    for change in changes:
        low, high = (f"{rate:.1f}" for rate in (change.low, change.high))
        rates = low if low == high else f"{low} to {high}"
        gains = " to ".join(dict.fromkeys(f"{round(gain, 2) + 0.0:+.0%}" for gain in change.gain))
        lines.append(f"    {change.change:<34} {rates:>18}   {gains}")
    return lines


def _advised(summary: Summary, diagnosis: Diagnosis, first: answer.Answer | None) -> set[int]:
    """Returns the numbers of workers that the report recommends."""
    given = [answer.settings_of(summary, one) for one in diagnosis.verdicts]
    given.append(None if first is None or first.settings is None else dict(first.settings))
    numbers = (one.get("num_workers") for one in given if one)
    return {number for number in numbers if isinstance(number, int)}


def _by_depth(summary: Summary, advised: Set[int]) -> list[str]:
    """Formats the predicted rates by number of workers and prefetch depth."""
    rates = by_workers_and_depth(summary, advised)
    if not rates:
        return []
    depths = sorted({depth for row in rates.values() for depth in row if depth})
    lines = ["", "  predicted batches/s by num_workers (rows) and prefetch_factor (columns)"]
    lines.append(" " * 14 + "".join(f"{depth:>9}" for depth in depths))
    for workers, row in rates.items():
        cells = "".join(f"{row.get(depth, row.get(0, 0.0)):>9.1f}" for depth in depths)
        mark = "   now" if workers == summary.workers else "   advised" if workers in advised else ""
        lines.append(f"    {workers:>10}{cells}{mark}")
    return lines


def _loaders(recording: Recording) -> int:
    """Returns the number of loaders used by the process with the longest loop."""
    longest = next(iter(timeline.loops_of(recording.processes)), None)
    waits = longest.process.events if longest is not None else ()
    return len({event.a for event in waits if event.kind == events.WAIT})


def _of_loader(summary: Summary, loaders: int) -> list[str]:
    """Returns the name of the loader that the report describes, if there are several."""
    if loaders < 2:
        return []
    return [f"  this report describes {answer.name_of(summary)}, which has the longest loops of {loaders} loaders"]


def _measured(summary: Summary, loaders: int) -> list[str]:
    waits = summary.waits
    filled = round(_BAR * (1 - waits.step))
    epochs = "1 epoch" if summary.loop.epochs == 1 else f"{summary.loop.epochs} epochs"
    lines = [
        *_of_loader(summary, loaders),
        f"  {summary.loop.steps} steps in {epochs}, {summary.loop.loop_s:.2f} s in the loop, "
        f"{summary.counted(summary.workers)}, {summary.host.cpus:.3g} CPUs",
        f"  step {summary.loop.step_ms:.2f} ms, wait {summary.loop.wait_ms:.2f} ms"
        f"   [{'#' * filled}{'.' * (_BAR - filled)}] {1 - waits.step:.0%} of the time spent waiting",
    ]
    spread = summary.loop.wait_percentiles_ms
    if spread is not None:
        named = (("half", "p50"), ("90 %", "p90"), ("99 %", "p99"))
        lines.append(
            f"  waits: {', '.join(f'{text} at most {spread[name]:.2f} ms' for text, name in named)}, longest "
            f"{spread['max']:.2f} ms"
        )
    lines += gpu_text.lines(summary)
    if summary.profiling.overhead_share is not None:
        parts = ((name, summary.profiling.overhead.get(f"{name}_share")) for name in ("hooks", "watching"))
        shares = ", ".join(f"{name} {share:.2%}" for name, share in parts if share is not None)
        lines.append(f"  profiling overhead {summary.profiling.overhead_share:.2%}{f' ({shares})' if shares else ''}")
    return lines


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
