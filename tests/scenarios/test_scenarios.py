# SPDX-License-Identifier: Apache-2.0
"""The fast scenarios: each planted cause is named, and nothing false is certain. tools/scenarios runs all of them."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("PIL", reason="Pillow, which makes the images, is not installed")
pytest.importorskip("feedline", reason="the package is not installed")

sys.path.insert(0, str(Path(__file__).parent))
from runner import run
from scenarios import SCENARIOS

FAST = [scenario for scenario in SCENARIOS if scenario.fast]


def test_there_are_twelve_fast_scenarios_of_as_many_causes():
    assert len({scenario.causes for scenario in FAST}) >= 12


@pytest.mark.parametrize("scenario", FAST, ids=lambda scenario: scenario.script)
def test_the_planted_cause_is_named(scenario, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    outcome = run(scenario)
    named = [(verdict.cause, verdict.share, verdict.confidence) for verdict in outcome.verdicts]
    assert set(scenario.causes) <= {cause for cause, _, _ in named}, named
    assert outcome.wrongly_certain == [], named
    assert outcome.overhead is not None and outcome.overhead < 0.02  # 1 % and what a start costs a run of seconds
