# SPDX-License-Identifier: Apache-2.0
"""Ray Train: two workers share the samples, and a run that Ray restarts from its checkpoint delivers each sample
once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray.train.torch", reason="Ray Train is not installed (tools/test --integrations installs it)")

import ray_runs
from ray_runs import BATCH, DIES_AT

import feedline

HANG_S = 900  # Ray starts a dozen processes: this takes a minute, or five if the cores are busy


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """Returns the lines of each rank, including those from before it died."""
    folder = tmp_path_factory.mktemp("ray")
    paths = [str(Path(feedline.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
    }
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as scratch, (folder / "log").open("w") as log:
        command = [sys.executable, ray_runs.__file__, str(folder), scratch]
        status = subprocess.run(command, env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=HANG_S)
    assert status.returncode == 0, (folder / "log").read_text()[-4000:]
    assert (folder / "died").exists(), "no worker died: nothing was resumed"
    return [[json.loads(line) for line in (folder / f"{rank}.jsonl").read_text().splitlines()] for rank in range(2)]


def test_the_workers_are_ranks_and_their_states_agree(ranks: list[list[dict[str, Any]]]) -> None:
    first = [[line for line in rank if not line["resumed"]] for rank in ranks]
    for ours, theirs in zip(*first, strict=False):
        assert ours["state"] == theirs["state"]
        assert not set(ours["samples"]) & set(theirs["samples"])
    assert len(first[1]) == DIES_AT


def test_after_the_restart_every_sample_was_seen_once(ranks: list[list[dict[str, Any]]]) -> None:
    """Steps after the last checkpoint are repeated, with the same samples."""
    with ray_runs.rows().loader(2 * BATCH, shuffle=True, seed=6, rank=0, world_size=1) as loader:
        order = [loader.last_samples for _ in loader]
    resumed = [[line["samples"] for line in rank if line["resumed"]] for rank in ranks]
    steps = max(map(len, resumed))
    assert 0 < steps < len(order), "the run did not go on from its checkpoint"
    for step in range(1, steps + 1):
        together = sorted(sample for rank in resumed for sample in (rank[-step] if len(rank) >= step else []))
        assert together == sorted(order[-step])
    before = [[line["samples"] for line in rank if not line["resumed"]] for rank in ranks]
    for step in range(len(order) - steps):
        assert sorted(sample for rank in before for sample in rank[step]) == sorted(order[step])
