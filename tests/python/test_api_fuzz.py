# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of the public API finds a planted fault of each verdict, and nothing with a few seeds without faults."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from running_processes import HANG_S

pytest.importorskip("torch", reason="torch, which the fuzzer's loaders use, is not installed")

TESTS = Path(__file__).parents[1]
CASE = {
    "seed": 8,
    "door": "loader",
    "way": "whole",
    "source": "arrays",
    "steps": [["map", {"fn": "same", "fields": "x", "processes": 0}]],
    "options": {"batch_size": 4, "shuffle": True, "output": "numpy", "num_workers": 2},
}


def run(environment: dict[str, str], *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    paths = f"{TESTS}:{environment['PYTHONPATH']}"
    command = [sys.executable, "-W", "ignore", "-m", "api_fuzz", *arguments]
    return subprocess.run(
        command, env={**environment, **variables, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=HANG_S
    )


def test_sound_seeds_pass(environment: dict[str, str]) -> None:
    done = run(environment, "6")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "api: 6 seeds" in done.stdout and "0 failures" in done.stdout


def test_a_seed_is_always_the_same_case(environment: dict[str, str]) -> None:
    program = "from api_fuzz import case; print(*(case.drawn(seed).as_text() for seed in range(50)))"
    paths = {**environment, "PYTHONPATH": f"{TESTS}:{environment['PYTHONPATH']}"}
    found = [
        subprocess.run([sys.executable, "-c", program], env=paths, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1] and len(set(found[0].splitlines())) > 0


@pytest.mark.parametrize("fault", ["crash", "hang", "exception", "rows"])
def test_a_planted_fault_is_found(fault: str, environment: dict[str, str], tmp_path: Path) -> None:
    """It prints the seed and a script of a case that fails in the same way without needless operations or options."""
    variables = {"FEEDLINE_API_FUZZ_PLANT": fault, "FEEDLINE_API_FUZZ_LIMIT_S": "20"}
    done = run(environment, "--case", json.dumps(CASE), **variables)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"seed 8: {fault}" in done.stdout
    script = done.stdout.partition("-- the smallest case that was found\n")[2].rpartition("\napi: ")[0]
    assert ("shuffle" in script or '"same"' in script) == (fault == "hang"), done.stdout
    (tmp_path / "script.py").write_text(script)
    paths = {**environment, "PYTHONPATH": f"{TESTS}:{environment['PYTHONPATH']}"}
    alone = subprocess.run([sys.executable, str(tmp_path / "script.py")], env=paths, capture_output=True, text=True)
    assert alone.stdout == "ran\n", "the script runs, without a planted fault: " + alone.stderr
