# SPDX-License-Identifier: Apache-2.0
"""The second held-out set: every script exists, describes its planted cause, and runs to its end in its short form.

tools/scenarios --blind tests whether the causes are reported, and blind/proof.py whether they exist.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch, whose loader the scripts use, is not installed")
pytest.importorskip("PIL", reason="Pillow, which makes the images, is not installed")
pytest.importorskip("feedline", reason="the package is not installed")

sys.path.insert(0, str(Path(__file__).parent))
from scenarios import BLIND, BLIND_SCRIPTS, HELD_OUT, PLANTED, PLANTED_SCRIPTS, SCENARIOS

AROUND = {"planting.py", "proof.py", "short_runs.py"}


@pytest.fixture(scope="module")
def short_runs(tmp_path_factory):
    """The folder with each script's exit status and output."""
    folder = tmp_path_factory.mktemp("short_runs")
    scripts = [scenario.script + (":2" if scenario.launcher else "") for scenario in BLIND]
    environment = os.environ | {"TMPDIR": str(tmp_path_factory.mktemp("data"))}
    environment.pop("REMOVED", None)
    run = [sys.executable, "-W", "ignore", str(BLIND_SCRIPTS / "short_runs.py"), str(folder), *scripts]
    subprocess.run(run, env=environment, check=True, timeout=3000)
    return folder


@pytest.mark.parametrize("scenario", BLIND, ids=lambda scenario: scenario.script)
def test_a_script_runs_to_its_end(scenario, short_runs):
    status = (short_runs / f"{scenario.script}.status").read_text()
    output = (short_runs / f"{scenario.script}.log").read_text()
    assert status == ("0 0" if scenario.launcher else "0"), output


def test_the_table_and_the_folder_agree():
    assert {scenario.path for scenario in BLIND} == {
        path for path in BLIND_SCRIPTS.glob("*.py") if path.name not in AROUND
    }


def test_the_forty_scripts_are_in_their_folder():
    found = {path for path in PLANTED_SCRIPTS.glob("*.py") if path.name not in ("workload.py", "store.py")}
    assert {scenario.path for scenario in PLANTED} == found and len(found) == 40
    for scenario in PLANTED:
        changed = "args.fixed" in scenario.path.read_text()
        assert changed == bool(scenario.mended and not scenario.unlimited), scenario.script


@pytest.mark.parametrize("scenario", BLIND, ids=lambda scenario: scenario.script)
def test_a_planted_cause_can_be_taken_away(scenario):
    """By a switch in the script, or by leaving out the container's limits."""
    source = scenario.path.read_text()
    for cause in scenario.causes:
        assert (f'planted("{cause}")' in source) != (cause == "cpu_quota")


def test_no_name_is_used_twice():
    names = [scenario.script for scenario in (*SCENARIOS, *HELD_OUT, *BLIND, *PLANTED)]
    assert len(names) == len(set(names))
