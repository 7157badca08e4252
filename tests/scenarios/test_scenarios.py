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
    named = {verdict.code for verdict in outcome.verdicts}
    if set(scenario.causes) <= named and not outcome.wrongly_certain:
        assert outcome.overhead is not None and outcome.overhead < 0.2  # tools/scenarios measures it more closely
        return
    free = len(os.sched_getaffinity(0)) - (outcome.others_cpus or 0.0)
    if free < scenario.free_cpus:
        pytest.skip(f"{scenario.free_cpus} CPUs must be free for it, and other programs left {free:.1f}")
    seen = [(verdict.code, verdict.share, verdict.confidence) for verdict in outcome.verdicts]
    pytest.fail(f"{scenario.causes} was planted, and these were named: {seen}")
