# SPDX-License-Identifier: Apache-2.0
"""The examples of changing ranks: every step has the samples of the plan, with FSDP2 and with replicas that die."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("torch.distributed.fsdp", reason="torch has no FSDP")
if not hasattr(torch.distributed.fsdp, "fully_shard"):
    pytest.skip("torch has no FSDP2", allow_module_level=True)

import feedline

EXAMPLES = Path(__file__).resolve().parents[3] / "examples/elastic"
HANG_S = 600


def run(*command: str) -> str:
    paths = [str(Path(feedline.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    told = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, *command], env=told, capture_output=True, text=True, timeout=HANG_S)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout


def fsdp2(folder: Path, ranks: int, steps: int) -> None:
    torchrun = ["-W", "ignore", "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    run(*torchrun, str(EXAMPLES / "fsdp2.py"), str(folder), "--steps", str(steps))


def steps_of(folder: Path, ranks: int, first: int, end: int) -> list[list[int]]:
    """Returns the sorted samples of the global batches that these lines of all ranks form."""
    lines = [(folder / f"samples.{rank}.jsonl").read_text().splitlines()[first:end] for rank in range(ranks)]
    steps: list[Any] = [[json.loads(line)["samples"] for line in step] for step in zip(*lines, strict=True)]
    return [sorted(index for part in step for index in part) for step in steps]


def test_fsdp2_saved_on_four_ranks_resumes_on_two(tmp_path: Path) -> None:
    resumed, whole = tmp_path / "resumed", tmp_path / "whole"
    resumed.mkdir()
    whole.mkdir()
    fsdp2(resumed, 4, 13)
    fsdp2(resumed, 2, 15)  # into the second epoch
    fsdp2(whole, 2, 28)
    example = runpy.run_path(str(EXAMPLES / "fsdp2.py"))
    with example["rows"]().loader(example["GLOBAL_BATCH"], shuffle=True, seed=3, drop_last=True, epochs=2) as loader:
        plan = [sorted(loader.last_samples) for _ in loader][:28]
    assert steps_of(resumed, 4, 0, 13) + steps_of(resumed, 2, 13, 28) == plan == steps_of(whole, 2, 0, 28)
    ours, theirs = torch.load(resumed / "model.pt"), torch.load(whole / "model.pt")
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, rtol=1e-4, atol=1e-5)


def test_replicas_that_die_and_join(tmp_path: Path) -> None:
    shown = run(str(EXAMPLES / "replicas.py"), str(tmp_path))
    lines = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    replicas = [line["replicas"] for line in lines]
    assert replicas == [3] * 5 + [2] * 4 + [3] * (len(lines) - 9), "one died in step 5, one joined in step 9"
    assert all(len(set(line["samples"])) == len(line["samples"]) for line in lines)
    assert np.bincount([index for line in lines for index in line["samples"]]).tolist() == [2] * 200
    assert "committed [2] times in 2 epochs" in shown
