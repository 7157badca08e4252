# SPDX-License-Identifier: Apache-2.0
"""Four ranks that torchrun starts: every sample as often as promised, one state for all ranks, and resuming on two."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import torchrun_runs
from torchrun_runs import GLOBAL_BATCH, ROWS

import feedline

HANG_S = 900
RANKS = 4


def torchrun(job: str, folder: Path, ranks: int = RANKS) -> subprocess.Popen[bytes]:
    paths = [str(Path(feedline.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc_per_node={ranks}", torchrun_runs.__file__, job, str(folder)]
    with (folder / "torchrun.log").open("w") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)


def written(folder: Path, ranks: int = RANKS) -> list[list[dict[str, Any]]]:
    """Returns every complete line that each rank wrote."""
    texts = [(folder / f"{rank}.jsonl").read_text() for rank in range(ranks)]
    return [[json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()] for text in texts]


def run(job: str, folder: Path, ranks: int = RANKS) -> list[list[dict[str, Any]]]:
    process = torchrun(job, folder, ranks)
    try:
        assert process.wait(HANG_S) == 0, (folder / "torchrun.log").read_text()[-3000:]
    finally:
        process.terminate()  # torchrun passes it to its ranks
    return written(folder, ranks)


def global_batches(epoch: int) -> list[list[int]]:
    """Returns the samples of one rank, batch by batch."""
    with torchrun_runs.points().loader(GLOBAL_BATCH, shuffle=True, seed=8, rank=0, world_size=1) as loader:
        loader.set_epoch(epoch)
        return [loader.last_samples for _ in loader]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """Lines of four ranks that are not killed; starting them takes seconds, so tests share one start."""
    return run("every_epoch,joined", tmp_path_factory.mktemp("torchrun"))


def lines(whole: list[list[dict[str, Any]]], **what: Any) -> list[dict[str, Any]]:
    """The line of each rank that contains this."""
    found = [[line for line in rank if what.items() <= line.items()] for rank in whole]
    assert all(len(rank) == 1 for rank in found)
    return [rank[0] for rank in found]


@pytest.mark.parametrize("epoch", [0, 1])
def test_the_union_of_four_ranks_is_what_was_promised(whole: list[list[dict[str, Any]]], epoch: int) -> None:
    remainder = ROWS % GLOBAL_BATCH
    total = {"exact": ROWS, "pad": ROWS - remainder + RANKS, "drop": ROWS - remainder}
    batches = ROWS // GLOBAL_BATCH
    for uneven, samples in total.items():
        ranks = [line["samples"] for line in lines(whole, job="every_epoch", uneven=uneven, epoch=epoch)]
        seen = Counter(sample for rank in ranks for batch in rank for sample in batch)
        assert sum(seen.values()) == samples
        if uneven == "exact":
            assert seen == Counter(range(ROWS))
            assert [len(rank) for rank in ranks] == [batches + 1] * remainder + [batches] * (RANKS - remainder)
        elif uneven == "pad":
            assert set(seen) == set(range(ROWS)) and len({len(rank) for rank in ranks}) == 1
        else:
            assert set(seen.values()) == {1} and len({len(rank) for rank in ranks}) == 1
        for b, expected in enumerate(global_batches(epoch)[:batches]):
            assert sorted(sample for rank in ranks for sample in rank[b]) == sorted(expected)


def test_the_states_of_all_ranks_agree_at_every_step(whole: list[list[dict[str, Any]]]) -> None:
    epochs = [line for rank in whole for line in rank if line["job"] == "every_epoch"]
    assert len(epochs) == RANKS * 3 * 2
    for line in epochs:
        assert all(line["states_agree"]), (line["uneven"], line["epoch"], line["states_agree"])


def test_join_trains_on_every_sample_as_one_process_would(whole: list[list[dict[str, Any]]]) -> None:
    joined = lines(whole, job="joined")
    assert {line["steps"] for line in joined} == {16, 18}, "the ranks should have different numbers of batches"
    model = torchrun_runs.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.stack([torch.as_tensor(row.x) for row in torchrun_runs.points()])
    for batch in global_batches(0) + global_batches(1):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x[batch]), x[batch].sum(1, keepdim=True)).backward()
        optimizer.step()
    for line in joined:
        for ours, alone in zip(line["weights"], model.parameters(), strict=True):
            assert torch.allclose(torch.tensor(ours), alone.detach().flatten(), atol=1e-6)


def test_a_run_with_a_killed_rank_continues_with_two(tmp_path: Path) -> None:
    process = torchrun("until_killed", tmp_path)
    try:
        moments, until = random.Random(1), time.monotonic() + HANG_S
        while not (tmp_path / "state.json").exists():
            assert process.poll() is None, (tmp_path / "torchrun.log").read_text()[-3000:]
            assert time.monotonic() < until, "the run does not begin"
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.5))
        os.kill(written(tmp_path)[3][0]["pid"], signal.SIGKILL)
        assert process.wait(HANG_S) != 0
    finally:
        process.terminate()
    state = json.loads((tmp_path / "state.json").read_text())
    before = written(tmp_path)
    saved = next(line for line in before[0] if line["state"] == state)
    done, epoch, step = [], saved["epoch"], saved["step"]
    for rank in before:
        mine = [line for line in rank if line["epoch"] == epoch and line["step"] <= step]
        assert mine[-1]["state"] == state, "any rank's state is the state"
        done += [sample for line in mine for sample in line["samples"]]
    after = run("rest", tmp_path, ranks=2)
    expected = global_batches(epoch)[step:]
    assert [sorted(a["samples"] + b["samples"]) for a, b in zip(*after, strict=True)] == [*map(sorted, expected)]
    assert sorted(done + [sample for rank in after for line in rank for sample in line["samples"]]) == list(range(ROWS))
