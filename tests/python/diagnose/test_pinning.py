# SPDX-License-Identifier: Apache-2.0
"""The gain of page-locked memory, measured after the run, with a device in Python for which copies from it are twice as
fast.
"""

import os
import sys
from pathlib import Path

import pytest
from running_processes import HANG_S
from summaries import but, summary
from watched import with_experiments

from feedline.diagnose import verdict
from feedline.diagnose.experiments import pinning
from feedline.profiler.summary.figures import Copies

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
SCRIPTS = Path(__file__).parents[2] / "scenarios" / "scripts"
BATCH = {"device": "standin", "batch_bytes": [8 << 20, 4096], "copied_well": False, "python": sys.executable}


@pytest.fixture
def device(tmp_path):
    """Returns the PYTHONPATH with which the process that times copies, which imports nothing from the script, finds the
    device.
    """
    registration = pytest.importorskip("torch.utils.backend_registration")
    if not hasattr(registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this torch has no devices that are written in Python")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "if any(argument.endswith('copy_probe.py') for argument in sys.orig_argv):\n"
        f"    sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "    import stand_in_device\n"
    )
    return os.pathsep.join(map(str, [folder, *filter(None, [os.environ.get("PYTHONPATH")])]))


def test_both_changes_are_compared_in_turn(device, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", device)
    (locked, asked), not_tried = pinning.measure([{"device": "standin"}, BATCH], HANG_S)
    assert not_tried == []
    assert locked["change"] == "pin_memory=True" and "8.39 MB" in locked["figure"]
    assert locked["before"] >= 4.1 and locked["after"] >= 2.0  # at 2, and at 4 GB/s
    assert locked["ratio"] < 0.9 and locked["ratio_low"] <= locked["ratio"] <= locked["ratio_high"]
    assert locked["own_ms"] > 0 and "own_ms" not in asked
    assert asked["change"] == "non_blocking=True" and asked["before"] >= 2.0 and asked["ratio"] < 0.9


NOT_TRIED = {
    "small": ({}, 1.0, "the budget is too small"),
    "nameless": ({"python": None}, HANG_S, "script's Python is unknown"),
    "gone": ({"python": "/nowhere/python"}, HANG_S, "/nowhere/python could not be started again: No such file"),
    "device": ({"device": "nothing:0"}, HANG_S, "failed in a separate process: RuntimeError"),
    "killed": ({"python": "/bin/false"}, HANG_S, "the process that timed copies to standin exited with status 1"),
}


@pytest.mark.parametrize("name", NOT_TRIED)
def test_what_cannot_be_timed_is_reported(name):
    changed, limit, why = NOT_TRIED[name]
    found, (one,) = pinning.measure([{**BATCH, **changed}], limit)
    assert found == [] and one["change"] == "pin_memory=True, non_blocking=True" and why in one["why"]


def test_a_driver_that_hangs_is_not_waited_for(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(pinning, "_LEAST_S", 0.5)
    found, (one,) = pinning.measure([BATCH], 1.0)
    assert found == [] and one["why"] == "timing copies to standin took longer than 1 s"


@pytest.mark.parametrize("facts", [[], [{"device": "cuda:0"}], [{**BATCH, "copied_well": True}]])
def test_nothing_is_tried_where_no_copy_could_gain(facts):
    assert pinning.measure(facts, 60.0) == ([], [])


# Copies take half of the time: half to six tenths of it are saved, less a tenth if next() page-locks; for blocking
# copies, half of nine tenths of it up to all of it.
@pytest.mark.parametrize(
    ("pinned", "workers", "cause", "low", "high"),
    [
        (False, 4, "unpinned_copy", 0.333, 0.429),
        (False, 0, "unpinned_copy", 0.250, 0.429),
        (True, 4, "blocking_copy", 0.290, 1.0),
        (True, 0, "blocking_copy", 0.290, 1.0),
    ],
)
def test_what_was_measured_is_what_is_predicted(pinned, workers, cause, low, high):
    copies = Copies(pinned, False, False, 1.0, 1e7, 10.0, 10.0, 50)
    run = but(summary(), workers=workers, steps=100, loop_s=2.0, step_ms=20.0, wait_ms=0.0, copies=(copies,))
    (before,) = (one for one in verdict.evaluate(run).verdicts if one.code == cause)
    measured = {"pin_memory=True": (0.4, 0.5), "non_blocking=True": (0.0, 0.1), "page-locking": (0.05, 0.1)}
    (after,) = (one for one in verdict.evaluate(but(run, copies_with=measured)).verdicts if one.code == cause)
    assert after.share == before.share == pytest.approx(0.5)
    assert after.gain == pytest.approx((low, high), abs=0.002)
    assert any("measured after the run" in sentence for sentence in after.evidence)
    assert after.gain[0] > 0 and after.gain[1] <= before.gain[1]


SCRIPT = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
import stand_in_device, torch
large = torch.zeros(8 << 20, dtype=torch.uint8)
for batch in torch.utils.data.DataLoader(range(240), batch_size=1):
    large.to("standin")
    stand_in_device.launch(2)
"""


@pytest.mark.measures
def test_the_gain_of_a_run_that_copies_from_pageable_memory_is_reported(tmp_path, device):
    pytest.importorskip("click", reason="click, for the command line, is not installed")
    environment = {"PYTHONPATH": device, "PYTHONWARNINGS": "ignore"}

    def has_comparison(found):
        return any(one["change"] == "pin_memory=True" for one in found["experiments"]["comparisons"])

    status, _, text, found = with_experiments(tmp_path, SCRIPT, "40s", has_comparison, environment=environment)
    assert status == 0
    if any("took longer than" in one["why"] for one in found["experiments"]["not_tried"]):
        pytest.skip("this machine is too busy to start torch in the time that copies are given")
    (unpinned,) = (one for one in found["verdicts"] if one["cause"] == "unpinned_copy")
    changes = {one["change"]: one for one in found["experiments"]["comparisons"]}
    assert "pin_memory=True: " in text
    assert any("measured after the run" in sentence for sentence in unpinned["evidence"])
    locked = changes["pin_memory=True"]
    own = locked["own_ms"] / locked["before_low"]  # without workers
    parts = max(1 - locked["ratio_high"] - own, 0.0), 1 - locked["ratio_low"]
    for gain, part in zip(unpinned["predicted_gain"], parts, strict=True):
        saved = unpinned["share"] * part
        assert gain == pytest.approx(saved / (1 - saved), abs=0.002)
