# SPDX-License-Identifier: Apache-2.0
"""num_workers="auto": the controller's decisions are visible in the statistics and in the log, and never change a
sample.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running_processes import HANG_S

import feedline
from feedline.loader import changes

CPUS = len(os.sched_getaffinity(0))


@pytest.fixture
def restless(force: Callable[..., None]) -> None:
    """Uses other numbers of threads and of prefetched batches for every batch."""
    force(random_threads=True)


def taken(loader: feedline.Loader, most: int = 1 << 30) -> list[tuple[bytes, ...]]:
    found = []
    for batch in loader:
        found.append(tuple(field.tobytes() for field in batch))
        if len(found) == most:
            break
    return found


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    batch_size=st.integers(1, 9),
    in_order=st.booleans(),
    shuffle=st.booleans(),
    stop=st.integers(0, 6),
    seed=st.integers(0, 99),
)
def test_no_sample_and_no_order_depends_on_it(
    train: feedline.Dataset, restless: None, batch_size: int, in_order: bool, shuffle: bool, stop: int, seed: int
) -> None:
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "in_order": in_order,
        "shuffle": shuffle,
        "seed": seed,
        "output": "numpy",
    }
    arranged = list if in_order else sorted
    with train.loader(**options, num_workers=1) as loader:
        expected = [arranged(taken(loader)) for _ in range(2)]
    with train.loader(**options) as loader:
        assert [arranged(taken(loader)) for _ in range(2)] == expected
        assert loader.stats()["controller"]["changed"] == 2 * len(expected[0])
    with train.loader(**options) as loader:  # left in the middle, and continued in another loader
        begun = taken(loader, stop) if stop else []
        state = loader.state_dict()
    with train.loader(**options) as loader:
        loader.load_state_dict(state)
        rest = taken(loader)
    if len(begun) < len(expected[0]):
        assert arranged(begun + rest) == expected[0]


def test_a_number_that_is_given_stays(train: feedline.Dataset, restless: None) -> None:
    with train.loader(4, num_workers=2, output="numpy") as loader:
        taken(loader)
        stats = loader.stats()
        assert (stats["controller"], stats["threads"]) == (None, 2)
        assert "adapts to the training loop" not in loader.explain()


def test_it_can_be_switched_off(train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDLINE_CONTROLLER", "off")
    with train.loader(4, output="numpy") as loader:
        assert loader.stats()["controller"] is None


def test_statistics_and_explain_tell(train: feedline.Dataset, restless: None) -> None:
    with train.loader(1, output="numpy", epochs=5) as loader:
        assert "no changes so far" in loader.explain()
        assert loader.stats()["controller"]["threads"] == loader.stats()["threads"] <= CPUS
        taken(loader)
        stats = loader.stats()
        controller = stats["controller"]
        assert (controller["changed"], len(controller["changes"])) == (105, 64)
        last = controller["changes"][-1]
        assert (last["to"], last["ahead_to"]) == (controller["threads"], controller["batches_ahead"])
        assert all(1 <= change["to"] <= controller["limit"] for change in controller["changes"])
        times = [change["at_s"] for change in controller["changes"]]
        assert times == sorted(times) and 0 < times[-1] <= stats["wall_s"]
        assert "changed 105 times" in loader.explain()
        json.dumps(stats)
        assert all(isinstance(value, (int, float)) for value in stats.as_dict().values())


def test_the_log_has_each_change_once_and_few_at_info(
    train: feedline.Dataset, restless: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_QUIET_S", HANG_S)  # however long the epoch takes
    caplog.set_level(logging.DEBUG, "feedline")
    with train.loader(3, output="numpy") as loader:
        taken(loader)
        made = loader.stats()["controller"]["changes"]
    lines = [record for record in caplog.records if "threads," in record.getMessage() and record.args]
    assert [record.args[1] for record in lines] == [change["to"] for change in made]
    assert [record.levelname for record in lines] == ["INFO"] + ["DEBUG"] * (len(made) - 1)


@pytest.mark.skipif(CPUS < 2, reason="one thread is the least")
def test_a_loop_that_never_waits_gets_its_cores_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEEDLINE_CONTROLLER", raising=False)
    rows = np.zeros((4000, 4), np.float32)
    with feedline.arrays(x=rows).loader(4, output="numpy", memory_budget="1 kB", epochs=99) as loader:
        limit = loader.stats()["controller"]["limit"]
        until = time.monotonic() + HANG_S
        for _ in loader:
            time.sleep(0.002)
            if loader.stats()["controller"]["threads"] < limit or time.monotonic() > until:
                break
        assert loader.stats()["controller"]["threads"] < limit
        assert loader.stats()["controller"]["changes"][0]["why"] == "the loop never waits: trying fewer threads"


def test_a_cpu_is_left_to_a_loop_that_feeds_a_gpu(train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    with train.loader(4) as loader:
        next(iter(loader))
        limit = loader.stats()["controller"]["limit"]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with train.loader(4) as loader:
        next(iter(loader))
        controller = loader.stats()["controller"]
        assert controller["limit"] == max(1, limit - 1)
        assert controller["threads"] <= controller["limit"]
        assert loader.stats()["threads"] == limit
    with train.loader(4, output="numpy") as loader:  # batches that torch does not see
        next(iter(loader))
        assert loader.stats()["controller"]["limit"] == limit


def test_ranks_of_one_machine_share_its_cpus(train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    if CPUS == 1:
        pytest.skip("one CPU cannot be shared out")
    with train.loader(4, output="numpy") as loader:
        assert loader.stats()["threads"] == 1
