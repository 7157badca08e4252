# SPDX-License-Identifier: Apache-2.0
"""Experiments on a copy of a process that uses a device, which a copy must not access. The device is simulated in
Python.
"""

from pathlib import Path

import pytest
from running_processes import processes_with
from watched import rungs_of, with_experiments

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")
registration = pytest.importorskip("torch.utils.backend_registration")
if not hasattr(registration, "_setup_privateuseone_for_python_backend"):
    pytest.skip("this torch has no devices that are written in Python", allow_module_level=True)

SCRIPTS = Path(__file__).parents[2] / "scenarios" / "scripts"
# As in scripts with a GPU: a model on the device, earlier work in several threads, and events in unreachable objects.
SCRIPT = """
import gc, os, sys, time
sys.path.insert(0, {scripts!r})
import stand_in_device, torch
from {package} import DataLoader
stand_in_device.IN_A_COPY = {in_a_copy!r}
model = torch.zeros(8).to("standin")
large = torch.rand(2_000_000)
(large * 2).sum()
gc.disable()
garbage = [stand_in_device.Event()]
garbage.append(garbage)
del garbage
owner = os.getpid()
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        time.sleep(0.01)
        {sample}
        return torch.tensor(i)
if __name__ == "__main__":
    seen = 0
    for batch in DataLoader(Samples(), batch_size=4, pin_memory=True, num_workers={workers}):
        assert batch.is_pinned() or {workers}
        seen += batch.sum().item()
        batch.to("standin", non_blocking=True)
    print("the sum is", seen)
    sys.exit(4)
"""


def diagnosed(folder, enough, sample="pass", in_a_copy="raise", workers=0, budget="7s", package="torch.utils.data"):
    facts = {"sample": sample, "in_a_copy": in_a_copy, "workers": workers, "package": package}
    source = SCRIPT.format(scripts=str(SCRIPTS), **facts)
    quiet = {"PYTHONWARNINGS": "ignore"}
    status, output, _, found = with_experiments(folder, source, budget, enough, environment=quiet)
    assert (status, output) == (4, "the sum is 2016\n")
    assert processes_with(str(folder / "train.py")) == []
    return found["experiments"]


def has_three_rungs(found):
    return {0, 1, 2} <= rungs_of(found).keys()


@pytest.mark.measures
def test_the_ladder_is_climbed_without_the_device(tmp_path):
    # a collection would destroy the unreachable objects, and a parallel sum without its threads would hang
    tried = diagnosed(tmp_path, has_three_rungs, "gc.collect(); (large * 2).sum()", "abort")
    assert tried["refused"] is None and has_three_rungs({"experiments": tried})
    assert not [one for one in tried["not_tried"] if one["change"].startswith("num_workers")]


@pytest.mark.parametrize("in_a_copy", ["raise", "abort"])
def test_samples_that_need_the_device_are_a_reason(tmp_path, in_a_copy):
    why = {
        "raise": "reading samples uses the GPU, which a forked process cannot use: ",
        "abort": "the trial process was killed by SIGABRT",
    }[in_a_copy]

    def is_refused(found):
        return (found["experiments"]["refused"] or "").startswith(why)

    tried = diagnosed(tmp_path, is_refused, "torch.zeros(2).to('standin')", in_a_copy, budget="5s")
    assert tried["rungs"] == [] and tried["not_tried"] == []
    assert tried["refused"].startswith(why)


@pytest.mark.measures
def test_a_rung_that_gets_stuck_ends_alone(tmp_path):
    alone = "torch.utils.data.get_worker_info() is None and os.getpid() != owner"
    sample = f"{alone} and torch.zeros(2).to('standin')"
    tried = diagnosed(tmp_path, lambda found: 1 in rungs_of(found), sample, "hang", budget="16s")
    assert 1 in rungs_of({"experiments": tried})
    (stuck,) = (one for one in tried["not_tried"] if one["change"] == "num_workers=0")
    assert stuck["why"].startswith("the trial did not finish within")


def test_a_copy_of_our_loader_page_locks_nothing(tmp_path):
    tried = diagnosed(tmp_path, has_three_rungs, in_a_copy="abort", workers=1, package="feedline")
    assert has_three_rungs({"experiments": tried})
