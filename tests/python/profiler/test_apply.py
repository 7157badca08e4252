# SPDX-License-Identifier: Apache-2.0
"""Other settings for the loader of a running script, without changing its code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch, whose loader is changed, is not installed")

import torch

import feedline
from feedline.profiler import apply

INJECT = Path(feedline.__file__).parent / "profiler" / "probe" / "inject"
SCRIPT = """
import sys, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
class Numbers(Dataset):
    def __len__(self): return 24
    def __getitem__(self, i): return torch.tensor([i, -1 if get_worker_info() is None else get_worker_info().id])
class Others(Numbers):
    pass
class Stream(IterableDataset):
    def __iter__(self): return iter(range(8))
if __name__ == "__main__":
    torch.manual_seed(1)
    for loader in (DataLoader(Numbers(), batch_size=2, shuffle=True), DataLoader(Others(), 2), DataLoader(Stream(), 2)):
        seen = [batch.tolist() for _ in range(2) for batch in loader]
        print(seen)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    def run(settings, loader=None, source=SCRIPT):
        tmp_path = tmp_path_factory.mktemp("run")
        script = tmp_path / "train.py"
        script.write_text(source)
        extra = {} if settings is None else apply.request(tmp_path, settings, loader)
        paths = os.pathsep.join([str(INJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths, "FEEDLINE_DIAGNOSE_SESSION": str(tmp_path), **extra}
        done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()], apply.outcome(tmp_path)

    return run


@pytest.fixture(scope="module")
def plain(run):
    batches, outcome = run(None)
    assert outcome == []
    return batches


def ids(batches):
    return [row[0] for batch in batches for row in batch]


def workers(batches):
    return {row[1] for batch in batches for row in batch}


@pytest.mark.parametrize("kind", ["torch", "feedline"])
def test_only_the_loader_that_is_meant_is_changed_and_keeps_its_samples_and_order(run, plain, kind):
    changed, outcome = run({"num_workers": 3, "loader": kind}, {"dataset": "Numbers", "batch_size": 2, "pid": 1})
    assert workers(plain[0]) == {-1}
    assert [ids(one) for one in changed[:2]] == [ids(one) for one in plain[:2]]
    assert workers(changed[0]) == {0, 1, 2} and workers(changed[1]) == {-1}
    assert changed[2] == plain[2]
    (one,) = outcome
    assert one["before"]["num_workers"] == 0 and one["before"]["loader"] == "torch"
    assert one["after"]["num_workers"] == 3 and one["after"]["loader"] == kind
    assert one["refused"] == {}


def test_what_would_change_the_samples_is_refused_with_its_reason(run, plain):
    changed, outcome = run({"num_workers": 2, "pin_memory": True})
    assert changed[2] == plain[2]  # two workers would both return the whole stream
    assert len(outcome) == 3 and "iterable" in apply.refused_by_all(outcome)["num_workers"]
    assert sum("num_workers" in one["refused"] for one in outcome) == 1
    if not torch.cuda.is_available():
        assert "no GPU" in apply.refused_by_all(outcome)["pin_memory"]


def test_everything_is_changed_and_changed_back_to_no_workers(run):
    source = SCRIPT.replace("batch_size=2,", "batch_size=2, num_workers=2, timeout=60, persistent_workers=True,")
    settings = {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False, "pin_memory": False}
    changed, outcome = run(settings, {"dataset": "Numbers"}, source)
    assert workers(changed[0]) == {-1} and sorted(ids(changed[0])) == sorted(2 * list(range(24)))
    assert {name: outcome[0]["after"][name] for name in settings} == settings


def test_a_setting_that_no_running_script_can_take_is_refused_at_once(tmp_path):
    with pytest.raises(ValueError, match="batch_size"):
        apply.request(tmp_path, {"batch_size": 4})


def test_no_loop_no_outcome(run):
    assert run({"num_workers": 2}, None, "print([])") == ([[]], [])
