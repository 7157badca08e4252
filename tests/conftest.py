# SPDX-License-Identifier: Apache-2.0
"""What all tests share: how long anything takes on this machine is no property of what they test."""

from __future__ import annotations

import collections
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

# Files that take a minute or more by few tests. Side by side they begin first: the last to begin is what all wait for.
_LONG = (
    "python/drop_in/test_same_as_torch.py",
    "python/integrations/test_examples.py",
    "python/remote/test_campaign.py",
    "python/diagnose/test_certainty.py",
    "python/tune/test_tune_ladder.py",
)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix().startswith(_MEASURE):
            item.add_marker(pytest.mark.measures)
    if "PYTEST_XDIST_WORKER" in os.environ:  # with --no-loadscope-reorder files begin in this order
        counts = collections.Counter(item.path for item in items)
        long = {here / name: number for number, name in enumerate(_LONG)}
        items.sort(key=lambda item: (long.get(item.path, len(long)), -counts[item.path], str(item.path)))
