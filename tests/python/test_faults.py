# SPDX-License-Identifier: Apache-2.0
"""The fault campaigns of tools/faults find planted faults, and find nothing in some faults of each kind of job."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running_processes import HANG_S

TESTS = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++, which compiles the failing calls, is missing")


def run(environment: dict[str, str], *arguments: str) -> tuple[int, dict[str, object], str]:
    """Returns the exit status of tools/faults, its figures, and the lines before them."""
    paths = f"{TESTS}:{environment['PYTHONPATH']}"
    command = [sys.executable, "-W", "ignore", "-m", "faults", *arguments]
    done = subprocess.run(
        command, env={**environment, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=HANG_S
    )
    text, _, last = done.stdout.rstrip().rpartition("\n")
    assert last.startswith("{"), done.stdout + done.stderr
    return done.returncode, json.loads(last), text


# The stride leaves about ten faults of each job.
@pytest.mark.parametrize(
    ("job", "stride"),
    [
        ("stage", 17),
        ("index --as", 2),
        pytest.param("pack tar", 31, marks=pytest.mark.nightly),
        pytest.param("pack pixels", 11, marks=pytest.mark.nightly),
        pytest.param("pixel cache", 11, marks=pytest.mark.nightly),
    ],
)
def test_a_failing_call_is_an_error_and_the_next_run_is_whole(
    job: str, stride: int, environment: dict[str, str]
) -> None:
    status, figures, shown = run(environment, "calls", "--job", job, "--stride", str(stride))
    assert (status, figures["wrong"]) == (0, 0), shown
    assert isinstance(figures["faults"], int) and figures["faults"] >= 5


def test_planted_faults_of_calls_are_found(environment: dict[str, str]) -> None:
    status, figures, shown = run(environment, "calls", "--job", "planted")
    assert status == 1 and isinstance(figures["wrong"], int) and figures["wrong"] >= 5
    assert "ENOSPC at call 1 (open64 out): it reports success, but a reader has" in shown
    assert "short at call 2 (write out): its output is read as whole, with other samples" in shown
    assert "kill at call 2 (write out): its output is read as whole, with other samples" in shown


def test_killed_jobs_are_whole_after_the_next_run(environment: dict[str, str]) -> None:
    status, figures, shown = run(environment, "kills", "--job", "pack tar", "--count", "6", "--seed", "3")
    assert (status, figures["wrong"]) == (0, 0), shown
    assert isinstance(figures["kills"], int) and figures["kills"] >= 6


@pytest.mark.nightly
def test_a_job_with_little_memory_ends_with_an_error(environment: dict[str, str]) -> None:
    status, figures, shown = run(environment, "memory", "--job", "pixel cache", "--stride", "6")
    assert (status, figures["wrong"]) == (0, 0), shown
    assert isinstance(figures["ends"], dict) and {"right samples"} < set(figures["ends"])
