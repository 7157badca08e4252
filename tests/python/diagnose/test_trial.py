# SPDX-License-Identifier: Apache-2.0
"""The proposed change, tested in a second run: the proposal, and whether the prediction was right."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from summaries import BY_CAUSE, but

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")

from feedline.diagnose import trial
from feedline.diagnose.diagnosis import Diagnosis
from feedline.diagnose.trial import Trial
from feedline.diagnose.verdict import evaluate
from feedline.findings import Finding
from feedline.profiler.experiments import Comparison, Experiments
from feedline.profiler.model import prediction, what_if
from feedline.profiler.recordings import Recording

FEEDLINE = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]
SCRIPT = """
import time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 120
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.tensor(i)
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=1)
    for batch in loader:
        time.sleep(0.005)
    print("workers", loader.num_workers)
"""


def recording(*comparisons, returncode=0):
    return Recording(["x"], returncode, 0, 1, [], [], {}, [], 1, experiments=Experiments(comparisons=list(comparisons)))


def verdict(cause, gain):
    return Finding(cause, "critical", 0.4, 0.9, gain=(gain, gain))


def proposed(summary, *comparisons):
    return trial.propose(summary, evaluate(summary), recording(*comparisons))


def prefetching(ratio, low, high):
    return Comparison("prefetch_factor=4", "steps/s", 10, 9, 11, 10 * ratio, 9, 11, ratio, low, high)


@pytest.mark.parametrize(
    ("cause", "settings"),
    [
        ("too_few_workers", {"num_workers": 4}),
        ("oversubscribed", {"num_workers": 4}),
        ("worker_startup", {"persistent_workers": True}),
        ("cpu_decode", {}),
        ("compute_bound", {}),
    ],
)
def test_what_a_loaders_arguments_can_express_is_proposed(cause, settings):
    found = proposed(BY_CAUSE[cause])
    assert found.settings == settings
    assert (cause in found.left) == (not settings and cause != "compute_bound")
    if settings:
        assert found.predicted[1] > 0
    else:
        assert found.predicted == (0.0, 0.0)


def test_times_that_go_away_add_up_and_not_gains():
    """The start of workers takes four tenths of a cycle, and more workers save three tenths of the rest."""
    summary = BY_CAUSE["worker_startup"]
    starts, making = verdict("worker_startup", 10 / 6 - 1), verdict("too_few_workers", 10 / 7 - 1)
    found = trial.propose(summary, Diagnosis([starts, making]), recording())
    assert found.settings.keys() == {"persistent_workers", "num_workers"}
    assert found.predicted == pytest.approx((10 / 3 - 1, 10 / 3 - 1), abs=1e-3)
    alone = trial.propose(summary, Diagnosis([making, verdict("oversubscribed", 5.0)]), recording())
    assert alone.predicted == pytest.approx((10 / 7 - 1, 10 / 7 - 1), abs=1e-3)  # only one number of workers


def test_a_run_whose_settings_were_all_refused_measured_nothing_of_them():
    def again(*applied):
        return replace(recording(), applied=list(applied))

    refused = {"refused": {"num_workers": "the dataset is iterable"}}
    assert "did not use the same loader" in trial.refused_whole(again(), {"num_workers": 4})
    assert trial.refused_whole(again(refused), {"num_workers": 4}) == "the dataset is iterable"
    assert trial.refused_whole(again(refused), {"num_workers": 4, "persistent_workers": True}) is None
    assert trial.refused_whole(again({"refused": {}}), {"num_workers": 4}) is None
    assert trial.refused_whole(again({"refused": {"loader": "broken"}}), {"num_workers": 4}) == "broken"


def test_a_longer_prefetch_is_proposed_where_it_was_measured_to_gain_and_can():
    even = BY_CAUSE["worker_startup"]
    # four workers with steps of 10 ms: one batch in 32 takes 200 ms, and prefetched batches are used up in the meantime
    uneven = replace(even, making=replace(even.making, wall_ms=20.0, cpu_ms=2.0, times=(0.72,) * 31 + (9.7,)))
    gaining = proposed(uneven, prefetching(1.2, 1.1, 9.0))
    assert gaining.settings == {"persistent_workers": True, "prefetch_factor": 4}
    alone = proposed(uneven).predicted
    possible = what_if.of_prefetching(uneven, uneven.workers, 4) * prediction.LONGER
    assert possible > 1.2
    assert [1 + gain for gain in gaining.predicted] == pytest.approx(
        [(1 + alone[0]) * 1.1, (1 + alone[1]) * possible], abs=2e-3
    )
    assert "prefetch_factor" not in proposed(uneven, prefetching(1.2, 0.9, 1.5)).settings
    assert "prefetch_factor" not in proposed(uneven, prefetching(1.01, 1.001, 1.02)).settings
    # if all batches take equally long, a longer queue has no effect: the measured gain was chance
    assert "prefetch_factor" not in proposed(even, prefetching(1.2, 1.1, 1.3)).settings


def test_batches_that_were_made_during_the_first_wait_are_not_counted():
    """Eight workers return eight batches at once after their first wait, and then one every 10 ms."""
    at_once = [(0.0, 0.0)] + [(0.001 * (n + 1), 1.0) for n in range(8)]
    steady = [(0.008 + 0.01 * (n + 1), 1.0) for n in range(32)]
    from_then = trial._without_first(at_once + steady, 8)
    assert from_then[1:] == steady
    assert trial._without_first(at_once + steady[:9], 8) == at_once + steady[:9]  # too few others
    assert trial._without_first(steady, 0) == steady


@pytest.mark.parametrize(
    ("low", "high", "true", "words"),
    [
        (0.45, 0.55, True, "confirmed: predicted +40% to +60%, measured +50%"),
        (0.10, 0.90, True, "confirmed"),
        (0.10, 0.20, False, "not confirmed: the gain was smaller"),
        (0.70, 0.90, False, "not confirmed: the gain was larger"),
    ],
)
def test_a_prediction_comes_true_where_the_intervals_meet(low, high, true, words):
    found = Trial({"num_workers": 4}, (0.4, 0.6), measured=(low + high) / 2, measured_low=low, measured_high=high)
    assert found.came_true is true and words in found.lines()[0]
    assert found.as_dict()["came_true"] is true


def test_a_command_that_failed_is_not_run_again():
    summary = BY_CAUSE["too_few_workers"]
    found = trial.run(["/nowhere"], summary, evaluate(summary), recording(returncode=3))
    assert found.not_tried == "the command failed" and found.came_true is None
    native = replace(summary, loader={**summary.loader, "native": True})
    assert "feedline.Loader" in trial.run(["/nowhere"], native, evaluate(native), recording()).not_tried


def test_where_nothing_would_gain_nothing_is_run():
    for summary in (BY_CAUSE["compute_bound"], but(BY_CAUSE["worker_startup"], epochs=1)):
        found = trial.run(["/nowhere"], summary, evaluate(summary), recording())
        assert found.settings == {} and found.not_tried.startswith("no loader argument")


def diagnosed(tmp_path):
    script, output = tmp_path / "train.py", tmp_path / "found.json"
    script.write_text(SCRIPT)
    command = [*FEEDLINE, "diagnose", "--quick", "--apply", "--output", output, "--", sys.executable, "-W", "ignore"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, script], capture_output=True, text=True, check=True, env=environment)
    return done, json.loads(output.read_text())["applied"]


@pytest.mark.measures
def test_the_change_is_tried_and_its_gain_measured(tmp_path):
    done, applied = diagnosed(tmp_path)
    assert done.stdout == "workers 1\n"  # of the original run
    workers = applied["settings"]["num_workers"]
    assert workers > 1 and f"workers {workers}" in done.stderr
    assert applied["refused"] == {} and applied["not_tried"] is None
    # reading waits: more workers make more batches even on a busy machine
    assert applied["measured"] > 0.3
    assert applied["measured_low"] <= applied["measured"] <= applied["measured_high"]
    assert f"applied num_workers={workers}" in done.stderr and "predicted" in done.stderr
