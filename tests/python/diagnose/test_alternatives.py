# SPDX-License-Identifier: Apache-2.0
"""No sentence of a report contradicts one of its rungs, whatever the rungs are."""

import math
import re
import signal
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from summaries import BY_CAUSE, HALF, LOADER, but, stages, summary, waiting

from feedline.diagnose import answer, report, trial
from feedline.diagnose.verdict import evaluate
from feedline.profiler.experiments import Comparison, Experiments, Rung, keep
from feedline.profiler.intervals import UNKNOWN, Shown, shown
from feedline.profiler.model.what_if import what_if
from feedline.profiler.recordings import Recording
from feedline.profiler.summary.figures import DROP_IN


def compared(change, ratio, low, high):
    return Comparison(change, "batches/s", 100.0, 90.0, 110.0, 100.0 * ratio, 90.0, 110.0, ratio, low, high)


def seen(measured, rungs, *comparisons):
    """Returns (text, diagnosis, summary, rungs by workers) of a run with these rungs: (workers, rate, low, high)."""
    made = keep([Rung(workers, rate, low, high, 50) for workers, rate, low, high in rungs])
    tried = Experiments(made, comparisons=list(comparisons))
    case = but(
        measured,
        rungs=tried.rates(),
        rung_intervals=tried.rate_intervals(),
        rungs_over_fewer=tried.gain_over_fewer(measured.workers),
        tried={one.change: (one.ratio, one.ratio_low, one.ratio_high) for one in comparisons},
    )
    recording = Recording(["x"], 0, 0, 1, [], [], {}, [], 1, experiments=tried)
    diagnosis = evaluate(case)
    return report.as_text(recording, case, diagnosis), diagnosis, case, {rung.workers: rung for rung in made}


def figure(rung):
    return rung.batches_per_s, rung.low, rung.high


def check(text, diagnosis, case, rungs):
    """Compares every sentence that contains a number of workers, or Feedline's loader, with the rungs."""
    present = rungs.get(case.workers)
    for workers in map(int, re.findall(r"(\d+) workers? instead of \d+ would help", text)):
        if workers in rungs and present is not None and math.isfinite(present.high):
            found = shown(figure(rungs[workers]), figure(present))
            # otherwise, the statement comes from the model, and no rung may contradict it
            measured = "would help; measured" in text
            assert found is Shown.BETTER if measured else found is not Shown.NOT_BETTER, text
            assert workers < case.workers or "no more than with fewer" not in rungs[workers].comparison, text
    for workers in map(int, re.findall(r"-> num_workers=(\d+)", text)):
        rung = rungs.get(workers)
        if rung is not None and workers > case.workers:
            assert "no more than with fewer" not in rung.comparison, text
        if rung is not None and present is not None and math.isfinite(present.high) and math.isfinite(rung.high):
            if workers > case.workers:
                assert shown(figure(rung), figure(present)) is not Shown.NOT_BETTER, text
            elif {workers, case.workers} <= set(
                case.ladder.rungs
            ):  # fewer workers only need to be as fast, because they leave CPUs to other programs
                assert shown(figure(present), figure(rung)) is not Shown.BETTER, text
    sentence = diagnosis.more_workers or ""
    advised = re.match(r"(\d+) workers? instead of", sentence)
    if advised and "would help; measured" in sentence and int(advised[1]) < case.workers:
        more_of_them = [n for n in map(int, re.findall(r"-> num_workers=(\d+)", text)) if n > case.workers]
        assert not more_of_them, text  # fewer workers would help, so more workers must not be recommended as well
    more = [rung for workers, rung in rungs.items() if workers > case.workers]
    better = [rung for rung in more if present is not None and shown(figure(rung), figure(present)) is Shown.BETTER]
    if "will not help;" in sentence or "did not improve it in this run" in text:
        assert not better, text
    if "undecided" in sentence:
        assert not better and "would help" not in sentence, text
    for workers, change in re.findall(r"    num_workers=(\d+) .*?([+-]\d+)%", text):
        rung = rungs.get(int(workers))
        if rung is not None and {int(workers), case.workers} <= set(case.ladder.rungs) and abs(int(change)) > 5:
            is_faster = rung.batches_per_s > present.batches_per_s
            # fewer batches from workers can be faster, because without workers, the loop makes batches between steps
            assert (int(change) > 0) == is_faster or (is_faster if int(workers) == 0 else case.workers == 0), text
    for workers, rung in rungs.items():  # uncertain measurements support no statement
        if not math.isfinite(rung.high):
            assert f"{case.counted(workers)}: " not in text, text
    low = case.ladder.tried.get(DROP_IN, (0.0, 0.0, 0.0))[1]
    assert (diagnosis.drop_in is not None) <= (low > 1)
    assert "measured, the loader alone: at" not in text


rate = st.floats(5, 5000)
RUNS = (
    "cpu_decode", "too_few_workers", "worker_handover", "storage_latency", "blocked_outside_files", "compute_bound",
    "python_main_process", "oversubscribed",
)  # fmt: skip


@st.composite
def ladders(draw):
    made = []
    for workers in draw(st.sets(st.sampled_from([0, 1, 2, 4, 8, 16]), min_size=1)):
        mean = draw(rate)
        half = mean * draw(st.sampled_from([0.01, 0.1, 0.3, 0.7, 2.0]))
        interval = UNKNOWN if draw(st.integers(0, 4)) == 0 else (max(mean - half, 0.0), mean + half)
        made.append((workers, mean, *interval))
    return made


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(RUNS), ladders(), st.tuples(st.floats(0.2, 6), st.floats(0.01, 2)))
def test_no_sentence_contradicts_a_rung(cause, rungs, drop_in):
    ratio, width = drop_in
    one = compared(DROP_IN, ratio, max(ratio - width, 0.0), ratio + width)
    check(*seen(BY_CAUSE[cause], rungs, one))


@pytest.mark.parametrize(
    ("four", "advised"),
    [((40.0, 39.0, 41.0), "1 worker "), ((51.0, 45.0, 57.0), "1 worker "), ((75.0, 74.0, 76.0), "4 workers ")],
)
def test_more_workers_are_no_advice_where_fewer_do_as_well(four, advised):
    """Two workers were slower than one and than four: the report contained both "4 workers would help" and "no more
    than with fewer".
    """
    ladder = [(1, 50.0, 49.0, 51.0), (2, 25.0, 24.0, 26.0), (4, *four)]
    text, diagnosis, case, rungs = seen(BY_CAUSE["too_few_workers"], ladder)
    check(text, diagnosis, case, rungs)
    assert diagnosis.more_workers.startswith(f"{advised}instead of 2 would help; measured")
    assert ("-> num_workers=4" in text) is (advised == "4 workers ")
    recording = Recording(["x"], 0, 0, 1, [], [], {}, [], 1, experiments=Experiments(list(rungs.values())))
    assert trial.propose(case, diagnosis, recording).settings == {"num_workers": int(advised.split()[0])}


def test_a_wide_rung_that_is_above_the_present_one_is_no_rung_that_gains_nothing():
    ladder = [
        (2, 4754.0, 4279.0, 5230.0),
        (4, 962.0, 952.0, 972.0),
        (8, 58.0, 57.0, 59.0),
        (16, 4203.0, 1261.0, 7146.0),
    ]
    text, diagnosis, case, rungs = seen(BY_CAUSE["cpu_decode"], ladder)
    check(text, diagnosis, case, rungs)
    assert diagnosis.more_workers.startswith("more workers will not help the loop, which consumes")


def test_a_rung_that_gives_no_more_than_the_present_one_may_is_no_advice():
    """The model predicted a gain with 4 workers, although both numbers were measured as equal, the current one
    imprecisely: "would help: -41%".
    """
    ladder = [(0, 5.0, 4.95, 5.05), (2, 6.0, 1.8, 10.2), (4, 6.0, 5.94, 6.06)]
    text, diagnosis, case, rungs = seen(BY_CAUSE["too_few_workers"], ladder)
    check(text, diagnosis, case, rungs)
    assert diagnosis.more_workers.startswith("more workers were not shown to help the loop: the rate of 2 workers")
    assert "-> num_workers=4" not in text


TINY = summary(
    waiting(handover=0.9, packed=0.9, packed_cpu=0.9),
    {"stages": stages(collate=0.6, python=0.4), "wall_ms": 0.3, "cpu_ms": 0.3, "pickle_ms": 0.25, "unpickle_ms": 0.4},
    step_ms=0.05,
    loop_s=0.5,
    workers=2,
)


def test_tiny_samples_are_reported_to_need_no_workers():
    """The ladder measured 1,366 batches/s without workers and 431 with two, but the report contained no gain."""
    rungs = [(0, 1366.0, 1300.0, 1430.0), (1, 520.0, 500.0, 540.0), (2, 431.0, 410.0, 450.0), (4, 420.0, 400.0, 440.0)]
    text, diagnosis, case, made = seen(TINY, rungs)
    check(text, diagnosis, case, made)
    assert diagnosis.more_workers.startswith("0 workers instead of 2 would help")
    assert "-> num_workers=0." in text and "0 workers: 1366.0 batches/s" in text
    recording = Recording(["x"], 0, 0, 1, [], [], {}, [], 1, experiments=Experiments(list(made.values())))
    proposal = trial.propose(case, diagnosis, recording)
    assert proposal.settings == {"num_workers": 0} and trial.refusal(case, recording, proposal) is None
    assert proposal.predicted[0] > 1


def test_a_wide_present_rung_that_is_below_another_all_the_same_is_compared():
    text, diagnosis, _, _ = seen(TINY, [(0, 2090.0, 1740.0, 2440.0), (2, 121.0, 0.0, 311.0)])
    assert diagnosis.more_workers.startswith("0 workers instead of 2 would help") and "at most 311.0" in text


WITHOUT = summary(HALF, {"busy": None}, workers=0, loader={**LOADER, "num_workers": 0, "batch_size": 32})


@pytest.mark.parametrize(("low", "offered"), [(2.1, True), (0.7, False)])
def test_a_loop_without_workers_is_offered_feedlines_loader_where_it_was_measured_to_gain(low, offered):
    text, diagnosis, _, _ = seen(WITHOUT, [(0, 12.0, 11.9, 12.1)], compared(DROP_IN, 2.4, low, 2.7))
    assert (diagnosis.drop_in is not None) is offered
    (first_line, *_) = text.strip().splitlines()
    assert ("use `from feedline import DataLoader`: " in first_line) is offered


def test_a_loop_without_workers_hears_of_feedlines_loader_without_experiments_too():
    (first,) = (v for v in evaluate(WITHOUT).verdicts if v.code == "python_main_process")
    assert "from feedline import DataLoader" in first.fix
    useless = but(WITHOUT, tried={DROP_IN: (0.95, 0.9, 1.0)})
    (first,) = (v for v in evaluate(useless).verdicts if v.code == "python_main_process")
    assert "feedline" not in first.fix


def test_four_workers_would_help_is_not_above_four_gain_nothing():
    rungs = [(1, 50.0, 49.0, 51.0), (2, 50.0, 48.0, 52.0), (4, 50.5, 49.0, 52.0)]
    text, diagnosis, _, _ = seen(BY_CAUSE["too_few_workers"], rungs)
    assert "would help" not in text and diagnosis.more_workers.startswith("more workers will not help")


def test_a_rung_of_few_batches_supports_no_advice():
    rungs = [(1, 25.0, 24.0, 26.0), (2, 50.0, 49.0, 51.0), (4, 900.0, *UNKNOWN)]
    text, diagnosis, _, _ = seen(BY_CAUSE["too_few_workers"], rungs)
    assert "(not measured well enough)" in text and "900.0 batches/s" not in (diagnosis.more_workers or "")


def test_overlapping_intervals_are_undecided():
    _, diagnosis, _, _ = seen(BY_CAUSE["cpu_decode"], [(4, 50.0, 45.0, 55.0), (8, 56.0, 49.0, 63.0)])
    assert "undecided" in diagnosis.more_workers


@pytest.mark.parametrize(
    ("predicted", "low", "high", "undecided"),
    [
        ((0.02, 0.3), -0.20, 0.38, True),
        ((0.0, 0.05), -0.02, 0.03, False),
        ((0.4, 0.6), 0.1, 0.9, False),
        ((0.4, 0.6), -0.3, 0.1, False),
    ],
)
def test_a_trial_that_may_be_a_loss_as_well_is_undecided(predicted, low, high, undecided):
    found = trial.Trial({"num_workers": 4}, predicted, measured=(low + high) / 2, measured_low=low, measured_high=high)
    assert found.undecided is undecided and (found.came_true is None) is undecided
    assert ("; undecided" in found.lines()[0]) is undecided and ("; confirmed" in found.lines()[0]) is (
        not undecided and found.came_true
    )


DECODES = BY_CAUSE["cpu_decode"]


def test_the_loops_gain_with_feedlines_loader_is_reported_once_in_the_first_line():
    text, diagnosis, case, _ = seen(DECODES, [(4, 12.0, 11.9, 12.1)], compared(DROP_IN, 2.4, 2.1, 2.7))
    (change,) = (one for one in what_if(case) if one.is_drop_in)
    gain = "{:.0%} to {:.0%} more batches per second".format(*change.gain)
    assert gain in diagnosis.drop_in
    assert gain in text.strip().splitlines()[0] and text.count(gain) == 1
    assert text.count("predicted gain") == 0  # the fix of cpu_decode is Feedline's loader


def test_a_gain_that_was_not_measured_is_not_repeated_for_the_same_number_of_workers():
    case = BY_CAUSE["too_few_workers"]
    diagnosis = evaluate(case)
    (settings,) = (answer.settings_of(case, one) for one in diagnosis.verdicts if one.code == "too_few_workers")
    quick = Recording(["x"], 0, 0, 1, [], [], {}, [], 1)
    text = report.as_text(quick, case, diagnosis)
    assert "would help" in diagnosis.more_workers and diagnosis.more_workers not in text
    assert f"    num_workers={settings['num_workers']} " not in text  # no second gain in the table
    assert text.count(f"predicted gain with num_workers={settings['num_workers']}: ") == 1


@pytest.mark.parametrize(("others", "proposed"), [(0.1, answer.USE_DROP_IN), (3.0, "measure again without the other")])
def test_other_programs_that_explain_the_waits_come_before_any_change(others, proposed):
    made = {"stages": stages(transform=1.0), "wall_ms": 20.0, "cpu_ms": 19.0}
    case = summary(HALF, made, {"others_cpus": others})
    assert answer.choose(case, evaluate(case)).text.startswith(proposed)


def test_without_experiments_the_first_line_proposes_feedlines_loader_and_the_predicted_workers():
    case = BY_CAUSE["too_few_workers"]
    diagnosis = evaluate(case)
    first = answer.choose(case, diagnosis)
    (finding,) = (one for one in diagnosis.verdicts if one.code == "too_few_workers")
    assert first.change.startswith(f"{answer.USE_DROP_IN} (gain not measured)") and first.basis == answer.UNKNOWN
    assert (
        f"or set {answer.arguments(answer.settings_of(case, finding))} (predicted: {finding.gain_text('batches')})"
        in first.text
    )
    assert answer.choose(case, diagnosis, tried=Experiments([])) == first, "an experiment that had no time is the same"
    own = replace(case, loader={**case.loader, "native": True, "class": "feedline.Loader"})
    assert "DataLoader`" not in answer.choose(own, evaluate(own)).text


def test_a_measured_change_precedes_a_larger_predicted_one():
    """Four workers were measured to be faster, while the largest cause's gain is only predicted."""
    ladder = [(2, 25.0, 24.0, 26.0), (4, 45.0, 44.0, 46.0)]
    _, diagnosis, case, _ = seen(BY_CAUSE["too_few_workers"], ladder)
    first = answer.choose(case, diagnosis, tried=Experiments([]))
    assert first.settings == {"num_workers": 4} and first.basis == answer.MEASURED_LOADER
    with_drop_in = but(case, tried={DROP_IN: (6.0, 5.0, 7.0)})
    assert answer.choose(with_drop_in, diagnosis, tried=Experiments([])).is_drop_in
    undecided = but(case, tried={DROP_IN: (6.0, 0.5, 11.0)})
    assert answer.choose(undecided, diagnosis, tried=Experiments([])).settings == {"num_workers": 4}
    applied = trial.Trial({"num_workers": 3}, (0.2, 0.4), measured=0.3, measured_low=0.25, measured_high=0.35)
    found = answer.choose(with_drop_in, diagnosis, applied, Experiments([]))
    assert found.text.startswith("set num_workers=3: 25% to 35% more batches per second (measured in a second run)")


def test_the_first_line_names_the_loader_and_changes_nothing_if_the_loop_does_not_wait():
    case = BY_CAUSE["compute_bound"]
    named = but(case, loader={**LOADER, "dataset": "ImageFolder"})
    first = answer.choose(named, evaluate(named))
    assert first.gain is None and first.change.startswith("leave the loader unchanged")
    assert first.text.endswith("for the loader over ImageFolder with batch size 32")


def test_feedlines_loader_is_not_advised_where_it_was_measured_not_to_gain():
    useless = but(DECODES, tried={DROP_IN: (0.95, 0.9, 1.0)})
    assert all("feedline" not in one.fix and "DataLoader" not in one.fix for one in evaluate(useless).verdicts)
    assert not answer.choose(useless, evaluate(useless), tried=Experiments([])).is_drop_in


def test_no_number_of_workers_is_advised_with_a_gain_of_nothing():
    """The current number was measured imprecisely, with an upper bound above the model's rate for any number."""
    ladder = [(0, 3.2, 2.8, 3.6), (1, 2.8, 0.0, 10.5), (2, 2.3, 0.0, 6.2), (4, 2.9, *UNKNOWN)]
    busy = summary(
        waiting(production=0.34),
        {"wall_ms": 113.6, "cpu_ms": 113.6, "stages": stages(storage=0.2, decode=0.8)},
        {"cpus": 2.0, "used_cpus": 0.4, "wanted_cpus": 1.0},
        workers=1,
        step_ms=410.0,
        loop_s=72.0,
        steps=114,
        loader={**LOADER, "num_workers": 1},
    )
    text, diagnosis, *_ = seen(busy, ladder)
    assert diagnosis.more_workers.startswith("more workers will not help: the loader produces a batch every")
    assert "-0%" not in text


@pytest.mark.parametrize("native", [False, True])
def test_without_experiments_feedlines_loader_is_named_as_untried(native):
    case = replace(DECODES, loader={**DECODES.loader, "native": native})
    text = report.as_text(Recording(["x"], 0, 0, 1, [], [], {}, [], 1), case, evaluate(case))
    assert ("`from feedline import DataLoader` and other settings were not tried" in text) is not native
    assert "without --quick" in text


def test_a_text_about_one_of_two_loaders_reports_which():
    assert report._of_loader(DECODES, 1) == []
    (line,) = report._of_loader(DECODES, 2)
    assert "of 2 loaders" in line and "batch size 32" in line


def test_another_interpreter_is_named_after_a_failure(tmp_path):
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    python.symlink_to("/bin/false")
    failed = Recording([str(python), "train.py"], 1, 0, 1, [], [], {}, [], 1)
    assert any(f"`{python}`" in note and sys.executable in note for note in report.notes_of(failed, None))
    own = Recording([sys.executable, "train.py"], 1, 0, 1, [], [], {}, [], 1)
    other = Recording(["/bin/false"], 1, 0, 1, [], [], {}, [], 1)
    for recording in (own, other, replace(failed, returncode=0)):
        assert not any("activate" in note for note in report.notes_of(recording, None))


def test_a_slow_trial_of_the_current_number_does_not_raise_the_predicted_gain_of_another():
    """A trial on a busy machine was five times slower than the run. The report promised 419 % to 587 % with four
    workers, and 93 % elsewhere.
    """
    measured = BY_CAUSE["too_few_workers"]
    modelled = 2000 / measured.making.wall_ms
    text, diagnosis, _, _ = seen(measured, [(2, modelled / 5, modelled / 12, modelled / 3)])
    expected, _, _, _ = seen(measured, [])
    gain = r"num_workers=4: (\d+% to \d+%) more batches"
    assert re.findall(gain, text) == re.findall(gain, expected) != []
    assert (
        diagnosis.more_workers
        == "4 workers instead of 2 would help: 93% more batches per second (predicted, not measured)"
    )


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"steps": 40, "epochs": 2}, "up to 16 of the 40 steps took batches that the workers loaded in advance"),
        ({"steps": 10, "epochs": 2}, "up to 10 of the 10 steps"),
        ({"steps": 200, "epochs": 2}, ""),
        ({"steps": 40, "epochs": 2, "workers": 0}, ""),
        ({"steps": 40, "epochs": 2, "loader": LOADER | {"prefetch_factor": 8}}, "up to 40 of the 40"),
        ({"steps": 40, "epochs": 2, "loader": LOADER | {"native": True}}, ""),
    ],
)
def test_batches_loaded_in_advance_are_mentioned_if_they_are_many(figures, said):
    """W2: their waits are short, however slow the loader is."""
    notes = report.notes_of(Recording(["x"], 0, 0, 1, [], [], {}, [], 1), but(summary(), **figures))
    found = [note for note in notes if "in advance" in note]
    assert bool(found) == bool(said) and all(said in note for note in found), notes
    crashed = Recording(["x"], -signal.SIGKILL, 0, 1, [], [], {}, [], 1)
    assert not any("in advance" in note for note in report.notes_of(crashed, but(summary(), **figures)))
