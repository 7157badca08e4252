# SPDX-License-Identifier: Apache-2.0
"""What all tests share: how long anything takes on this machine is no property of what they test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, so that what is refused is refused for what changed; the long proofs draw new ones.
settings.register_profile(
    "any_machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("FEEDLINE_PROOFS") != "long",
)
settings.load_profile("any_machine")

# What they assert is measured, of this machine as it is: rates, shares of time, causes. tools/test --jobs runs them by
# themselves, and all others side by side.
_MEASURE = (
    "scenarios/test_promises.py",
    "scenarios/test_scenarios.py",
    "python/diagnose/test_experiments.py",
    "python/diagnose/test_garbage.py",
    "python/diagnose/test_odd_loops.py",
    "python/diagnose/test_own_loaders.py",
    "python/diagnose/test_seen_waits.py",
    "python/diagnose/test_several.py",
    "python/test_live_controller.py",
    "python/test_peers_harness.py",
    "python/test_telemetry_table.py",
    "python/top/test_top_terminal.py",
    "python/trace/test_profile.py",
    "python/tune/test_tune.py",
    "python/watching/test_worker_hooks.py",
)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix().startswith(_MEASURE):
            item.add_marker(pytest.mark.measures)
