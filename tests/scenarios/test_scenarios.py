# SPDX-License-Identifier: Apache-2.0
"""The fast scenarios: each planted cause is named, and nothing false is certain. tools/scenarios runs all of them."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("PIL", reason="Pillow, which makes the images, is not installed")
pytest.importorskip("feedline", reason="the package is not installed")

sys.path.insert(0, str(Path(__file__).parent))
from limits import NotPermitted
from runner import run
from scenarios import SCENARIOS

FAST = [scenario for scenario in SCENARIOS if scenario.fast]


@pytest.mark.parametrize("scenario", FAST, ids=lambda scenario: scenario.script)
def test_the_planted_cause_is_named(scenario, monkeypatch):
    """Other programs that take the CPUs for seconds are a cause too, so tests/flaky.txt lists this test."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    try:
        outcome = run(scenario)
    except NotPermitted as error:
        pytest.skip(str(error))
    if outcome.unused:
        pytest.skip(outcome.unused)
    free = len(os.sched_getaffinity(0)) - (outcome.others_cpus or 0.0)
    named = {verdict.code: (verdict.share, verdict.confidence) for verdict in outcome.verdicts}
    if free < scenario.free_cpus and not set(scenario.causes) <= named.keys():
        pytest.skip(f"the scenario needs {scenario.free_cpus} free CPUs; other programs left {free:.1f}")
    assert set(scenario.causes) <= named.keys(), named
    assert not outcome.wrongly_certain, named
    assert outcome.overhead is not None and outcome.overhead < 0.2  # tools/scenarios prints how small it is
