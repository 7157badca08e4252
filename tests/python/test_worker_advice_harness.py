# SPDX-License-Identifier: Apache-2.0
"""The comparisons in bench/worker_advice.py; the benchmark itself measures how near the advice is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "bench/worker_advice.py"


@pytest.fixture(scope="module")
def harness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("worker_advice", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["worker_advice"] = module
    spec.loader.exec_module(module)
    return module


def test_the_advice_is_compared_with_the_best_of_all_numbers(harness) -> None:
    case = harness.Case("four cores", 4, 4, 20, 0, 5)
    row = harness.row_of(case, {0: 40.0, 1: 50.0, 2: 90.0, 3: 120.0, 4: 150.0, 5: 150.0})
    assert (row["advised"], row["best"], row["reached"]) == (3, 4, pytest.approx(0.8))
    assert row["why"] == case.advice.why


def test_a_simulated_host_has_its_cores_threads_and_storage(harness) -> None:
    case = harness.Case("two cores", 4, 2, 20, 0, 0.5, step_cpu_ms=0.5)
    rates = [harness.simulated(case, workers) for workers in case.numbers]
    assert rates[1] == pytest.approx(1000 / 21, rel=0.05) and rates[2] == pytest.approx(2 * rates[1], rel=0.1)
    # two second threads add half a core together; the loop needs some of it
    assert 2.2 * rates[1] < rates[4] < 2.6 * rates[1]
    assert harness.waiting(harness.Case("nfs", 16, 8, 1, 10.0, 1, "network"), 16) == 20.0
    assert harness.waiting(harness.Case("nfs", 16, 8, 1, 10.0, 1, "network", 2), 16) == 40.0
    assert harness.waiting(harness.Case("disk", 16, 8, 1, 10.0, 1, "disk"), 8) == pytest.approx(10 * 2 * 1.4)
    assert harness.waiting(harness.Case("ssd", 16, 8, 1, 10.0, 1, "ssd"), 16) == 10.0


def test_each_number_of_a_case_is_measured_in_every_round(harness, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(harness, "measured", lambda case, workers, batches: seen.append(workers) or 10.0 * workers + 1)
    small, large = harness.Case("small", 2, 2, 1, 1, 1), harness.Case("large", 64, 32, 1, 1, 1)
    rows, left = harness.measure((small, large), 2, 10, 2)
    assert seen == [0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0] and left == ["large"]
    assert rows[0]["best"] == 5 and rows[0]["reached"] == pytest.approx(11 / 51)


def test_twenty_different_hosts_are_made(harness) -> None:
    assert len({case.name for case in harness.CASES}) == 20
    assert all(case.advice.workers in case.numbers for case in harness.CASES)
