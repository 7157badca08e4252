# SPDX-License-Identifier: Apache-2.0
"""Runs the planted scenarios under diagnosis and prints which causes were named: the confusion matrix.

    tools/scenarios [NAME...] [--held-out | --blind | --planted] [--quick] [--applied] [--json FILE]

Exit status 0: at least 90 % named right, no wrong cause stated as certain, four of five rungs predicted within 20 %;
with --applied four of five promised gains too.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import promises
from limits import Limits, NotPermitted, refusal
from promises import NEAR, Change, Promise
from scenarios import BLIND, HELD_OUT, PLANTED, SCENARIOS, Scenario

from feedline.diagnose import causes, trial, verdict
from feedline.diagnose.diagnosis import Diagnosis
from feedline.diagnose.verdict import CERTAIN
from feedline.diagnose.watch import watch
from feedline.findings import Finding
from feedline.profiler import session
from feedline.profiler.model import prediction
from feedline.profiler.recordings import Recording
from feedline.profiler.summary import timeline
from feedline.profiler.summary.figures import Summary

# For a script's second form: the cause that it omits, and the recommended number of workers.
MENDED, WORKERS = "FEEDLINE_SCENARIO_MENDED", "FEEDLINE_SCENARIO_WORKERS"
_RIGHT = 0.9  # of the scenarios
_PREDICTED = 0.8  # of the predictions, and of the promised gains
_LADDER_S = 8.0
_ROUNDS = 2  # number of runs of a script as it is and with each change
_QUIET = 0.125  # share of the CPUs in use by other programs: above it, a ladder measures them as much as the loader


@dataclass(frozen=True)
class Rung:
    """Batches per second with this many workers.

    There are rates of the loader alone, which the ladder measures, and of the loop, which includes its steps: those
    predicted by the model, and by the model with the measured rung instead of its production of batches.
    """

    workers: int
    predicted: float
    measured: float
    low: float  # of the measurement, 95 %
    high: float
    loop_predicted: float
    loop_measured: float

    @property
    def near(self) -> bool:
        """The message for users is the effect of a change on the loop."""
        return abs(self.loop_predicted / self.loop_measured - 1) <= NEAR

    @property
    def near_alone(self) -> bool:
        return abs(self.predicted / self.measured - 1) <= NEAR


@dataclass(frozen=True)
class Outcome:
    scenario: Scenario
    verdicts: list[Finding]
    seconds: float
    overhead: float | None
    others_cpus: float | None
    rungs: list[Rung]
    promises: list[Promise]
    unused: str = ""  # why a limit had no effect; the run then lacked the planted problem

    @property
    def quiet(self) -> bool:
        """Whether only this scenario used the machine, so that rates can be compared with predictions."""
        return self.others_cpus is not None and self.others_cpus <= _QUIET * (os.cpu_count() or 1)

    @property
    def right(self) -> bool:
        """Whether all planted causes are reported, and the first reported one is true for the script."""
        named = [v.code for v in self.verdicts]
        true = self.scenario.causes + self.scenario.also
        return set(self.scenario.causes) <= set(named) and named[0] in true

    @property
    def wrongly_certain(self) -> list[str]:
        true = self.scenario.causes + self.scenario.also
        return [v.code for v in self.verdicts if v.confidence >= CERTAIN and v.code not in true]


def run(scenario: Scenario, ladder_s: float = 0.0, rounds: int = 0) -> Outcome:
    """Diagnoses the script; raises NotPermitted if its limits cannot be set.

    `ladder_s`: minimum seconds of experiments. `rounds`: how often the proposed changes are made afterwards.
    """
    begin = time.monotonic()
    recording, unused = _watch(scenario, max(scenario.budget, ladder_s))
    summary = timeline.summarise(recording)
    diagnosis = verdict.evaluate(summary)
    seconds = time.monotonic() - begin
    tried = []
    if rounds and summary is not None and recording.returncode == 0:
        tried = _promises(scenario, rounds, recording, summary, diagnosis)
    return Outcome(
        scenario,
        diagnosis.verdicts,
        seconds,
        summary.profiling.overhead_share if summary else None,
        summary.host.others_cpus if summary else None,
        _rungs(recording, summary),
        tried,
        unused,
    )


def _promises(
    scenario: Scenario, rounds: int, recording: Recording, summary: Summary, diagnosis: Diagnosis
) -> list[Promise]:
    """Returns the changes that --apply would try, and the script's second forms, if verdicts promise some of their
    gain.
    """
    changes = []
    proposal = trial.propose(summary, diagnosis, recording)
    if trial.refusal(summary, recording, proposal) is None:
        causes = tuple(v.code for v in diagnosis.verdicts if v.code not in (*proposal.left, "compute_bound"))
        changes.append(Change(causes, proposal.predicted, settings=proposal.settings))
    promised = {v.code: v.gain for v in diagnosis.verdicts}
    changes += [
        Change((cause,), promised[cause], mended=cause, workers=_workers_of(cause, summary))
        for cause in scenario.mended
        if cause in promised
    ]

    def rate(change: Change | None) -> float | str:
        again, _ = _watch(scenario, 0.0, change, summary)
        if again.returncode != 0:
            return f"it ended with exit status {again.returncode}"
        refused = trial.refused_whole(again, change.settings) if change and change.settings else None
        steps = trial.steps_per_s(again)
        return refused or (steps[0] if steps else "it gave no steps to measure")

    first = trial.steps_per_s(recording)
    return promises.tried(changes, rounds, first[0] if first else None, rate)


def _workers_of(code: str, summary: Summary) -> int | None:
    cause = causes.named(code)
    return None if cause is None else cause.workers(summary)


def _watch(
    scenario: Scenario, budget: float, change: Change | None = None, summary: Summary | None = None
) -> tuple[Recording, str]:
    """Runs the script once, with its limits; the text states why they had no effect, or is "". A `change` needs the
    summary of the run that proposed it.
    """
    if scenario.limits is not None and not (change and change.mended and scenario.unlimited):
        return _watch_inside(scenario.limits, scenario, budget, change, summary)
    return _watch_here(scenario, budget, change, summary), ""


def _watch_here(scenario: Scenario, budget: float, change: Change | None, summary: Summary | None) -> Recording:
    command = [sys.executable, "-W", "ignore", *scenario.launcher, str(scenario.path)]
    given = session.Change(change.settings, summary.loader) if change and change.settings and summary else None
    if change is None or not change.mended:
        return watch(command, budget, given)
    os.environ[MENDED] = change.mended
    if change.workers is not None:
        os.environ[WORKERS] = str(change.workers)
    try:
        return watch(command, budget, given)
    finally:
        for name in (MENDED, WORKERS):
            os.environ.pop(name, None)


def _rungs(recording: Recording, summary: Summary | None) -> list[Rung]:
    tried = timeline.experiments_of(recording, summary.loader) if summary is not None else None
    if summary is None or tried is None:
        return []
    rungs = []
    for rung in tried.rungs:  # also those whose interval is reported as uninformative
        predicted = prediction.loader_rate(summary, rung.workers)
        modelled = prediction.cycle_ms(prediction.without_rungs(summary), rung.workers)
        ladder = replace(summary.ladder, rungs={rung.workers: rung.batches_per_s})
        measured = prediction.cycle_ms(replace(summary, ladder=ladder), rung.workers)
        if predicted is not None and modelled > 0 and measured > 0:
            alone = (predicted, rung.batches_per_s, rung.low, rung.high)
            rungs.append(Rung(rung.workers, *alone, 1000 / modelled, 1000 / measured))
    return rungs


def _watch_inside(limits: Limits, *arguments: Any) -> tuple[Recording, str]:
    """A separate process joins the limits and records there, as it would in a container."""
    refused = refusal(limits)
    if refused is not None:
        raise NotPermitted(refused)
    with limits.groups() as groups, tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "recording.pickle")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                limits.enter(groups)
                # files of a script outlive it, because experiments read them again
                os.environ["TMPDIR"] = folder
                tempfile.tempdir = None
                result.write_bytes(pickle.dumps(_watch_here(*arguments)))
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        os.waitpid(child, 0)
        if not result.exists():
            raise RuntimeError(f"{arguments[0].script} was not watched inside its limits")
        return pickle.loads(result.read_bytes()), limits.unused(groups)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="scenarios; all by default")
    parser.add_argument("--held-out", action="store_true", help="the scripts that the rules were not made with")
    parser.add_argument("--blind", action="store_true", help="those that were written blind, later")
    parser.add_argument("--planted", action="store_true", help="forty, written from the list of causes")
    parser.add_argument("--quick", action="store_true", help="no ladder, and so nothing to compare predictions with")
    parser.add_argument("--applied", action="store_true", help="make the proposed changes: did their gains come true?")
    parser.add_argument("--json", type=Path, help="also write the outcomes here")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen_set = (arguments.planted, PLANTED), (arguments.blind, BLIND), (arguments.held_out, HELD_OUT)
    scenarios = next((found for given, found in chosen_set if given), SCENARIOS)
    chosen = [s for s in scenarios if not arguments.names or s.script in arguments.names]
    outcomes = []
    for scenario in chosen:
        try:
            outcome = run(scenario, 0.0 if arguments.quick else _LADDER_S, _ROUNDS if arguments.applied else 0)
        except NotPermitted as error:
            print(f"skipped  {scenario.script}: {error}", flush=True)
            continue
        if outcome.unused:
            print(f"not counted  {scenario.script}: {outcome.unused}", flush=True)
            continue
        outcomes.append(outcome)
        named = ", ".join(f"{v.code} {v.share:.0%} ({v.confidence:.2f})" for v in outcome.verdicts) or "nothing"
        mark = "right" if outcome.right else "WRONG"
        certain = f"  WRONGLY CERTAIN: {', '.join(outcome.wrongly_certain)}" if outcome.wrongly_certain else ""
        named += "  (on a stand-in device)" if scenario.stand_in else ""
        print(f"{mark}  {scenario.script:28} {outcome.seconds:5.1f} s  named: {named}{certain}", flush=True)
        if outcome.rungs:
            print(
                "       steps/s predicted / measured by workers (loader alone):  "
                + "  ".join(map(_sentence, outcome.rungs))
            )
        for promise in outcome.promises:
            print(f"       {promise.line()}", flush=True)
    print()
    print(matrix(outcomes))
    right = sum(outcome.right for outcome in outcomes)
    certain = sum(bool(outcome.wrongly_certain) for outcome in outcomes)
    overheads = [outcome.overhead for outcome in outcomes if outcome.overhead is not None]
    print(f"\n{right} of {len(outcomes)} named right; {certain} with a wrong cause stated as certain; ", end="")
    print(f"watching cost {max(overheads, default=0):.2%} at most")
    rungs = [rung for outcome in outcomes if outcome.quiet for rung in outcome.rungs]
    near = sum(rung.near for rung in rungs)
    if rungs:
        alone = sum(rung.near_alone for rung in rungs)
        print(f"{near} of {len(rungs)} rungs predicted within {NEAR:.0%} as steps of the loop: {near / len(rungs):.0%}")
        print(f"{alone} of {len(rungs)} within it as batches of the loader alone: {alone / len(rungs):.0%}")
    busy = sum(bool(outcome.rungs) and not outcome.quiet for outcome in outcomes)
    if busy:
        print(f"the rungs of {busy} scenarios are not compared: other programs used more than {_QUIET:.1%} of the CPUs")
    promised = is_promise_kept(outcomes)
    if arguments.json:
        arguments.json.write_text(json.dumps([as_dict(outcome) for outcome in outcomes], indent=2) + "\n")
    named = right >= _RIGHT * len(outcomes) and certain == 0
    return 0 if named and near >= _PREDICTED * len(rungs) and promised else 1


def is_promise_kept(outcomes: list[Outcome]) -> bool:
    """Prints how many promises came true; whether enough of those did that had the machine to themselves.

    The promised gain of copies depends on the device: with a simulated device, it does not count.
    """
    promised = [(outcome, promise) for outcome in outcomes for promise in outcome.promises if not promise.not_made]
    made = [(outcome, promise) for outcome, promise in promised if not outcome.scenario.stand_in]
    quiet = [promise for outcome, promise in made if outcome.quiet]
    if made:
        print(promises.summary(promise for _, promise in made))
        print(
            f"in {len(made) - len(quiet)} of these {len(made)}, other programs used more than {_QUIET:.1%} of the CPUs"
        )
    if len(promised) > len(made):
        print(f"{len(promised) - len(made)} more, on a stand-in device, are not counted")
    return sum(promise.near for promise in quiet) >= _PREDICTED * len(quiet)


def _sentence(rung: Rung) -> str:
    far = "" if rung.near else "!"
    return (
        f"{rung.workers}: {rung.loop_predicted:.1f}/{rung.loop_measured:.1f}{far}"
        f" ({rung.predicted:.1f}/{rung.measured:.1f})"
    )


def matrix(outcomes: list[Outcome]) -> str:
    """Rows: the planted cause. Columns: the cause reported first."""
    planted = sorted({outcome.scenario.causes[0] for outcome in outcomes})
    counts: dict[tuple[str, str], int] = {}
    for outcome in outcomes:
        first = outcome.verdicts[0].code if outcome.verdicts else "(none)"
        # either of two planted causes may come first
        row = first if first in outcome.scenario.causes else outcome.scenario.causes[0]
        counts[row, first] = counts.get((row, first), 0) + 1
    columns = sorted({named for _, named in counts})
    lines = ["planted \\ named first".ljust(24) + " ".join(str(i).rjust(3) for i in range(len(columns)))]
    for row in sorted({*planted, *(row for row, _ in counts)}):
        cells = " ".join(str(counts.get((row, column), "")).rjust(3) for column in columns)
        lines.append(row.ljust(24) + cells)
    return "\n".join(lines + [f"{i:>5} {column}" for i, column in enumerate(columns)])


def as_dict(outcome: Outcome) -> dict[str, object]:
    return {
        "scenario": outcome.scenario.script,
        "planted": list(outcome.scenario.causes),
        "stand_in_device": outcome.scenario.stand_in,
        "named": [{"cause": v.code, "share": v.share, "confidence": v.confidence} for v in outcome.verdicts],
        "right": outcome.right,
        "wrongly_certain": outcome.wrongly_certain,
        "overhead_share": outcome.overhead,
        "others_cpus": outcome.others_cpus,
        "promises": [promise.as_dict() for promise in outcome.promises],
        "rungs": [{**asdict(rung), "near": rung.near, "near_alone": rung.near_alone} for rung in outcome.rungs],
    }


if __name__ == "__main__":
    sys.exit(main())
