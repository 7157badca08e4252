# SPDX-License-Identifier: Apache-2.0
"""The ladder on a copy of the script's process: it measures, the script is not affected, and nothing is left over."""

import json
import os
import subprocess
import sys

import pytest
from running_processes import processes_with
from watched import LARGER_BUDGET, rungs_of, with_experiments

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")

from feedline.diagnose.experiments.text import lines as text_lines
from feedline.profiler.experiments import DatasetCopies, Experiments

FEEDLINE = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]
SCRIPT = """
import os, random, sys, time, torch
class Slow(torch.utils.data.Dataset):
    handle = lambda self: None  # no dataset that pickles
    def __init__(self): self.unpicklable, self.names = lambda: 0, [f"{i:032d}" for i in range(10_000)]
    def __len__(self): return 64
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.tensor(i)
if __name__ == "__main__":
    torch.manual_seed(3)
    seen = []
    for batch in torch.utils.data.DataLoader(Slow(), batch_size=4, shuffle=True, num_workers=1):
        seen += batch.tolist()
    print(seen, torch.rand(1).item(), random.Random(1).random(), sys.flags.optimize)
    try:
        os.wait()
    except ChildProcessError:
        print("no children")
"""


def two_are_faster(found):
    """Reading waits, so two workers make more batches even on a busy machine."""
    rungs = rungs_of(found)
    return {0, 1, 2} <= set(rungs) and rungs[2]["batches_per_s"] > 1.3 * rungs[1]["batches_per_s"]


def test_the_ladder_is_climbed_and_the_script_notices_nothing(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    environment = {"TMPDIR": str(tmp_path)}
    status, out, _, found = with_experiments(tmp_path, SCRIPT, "8s", two_are_faster, environment=environment)
    assert (status, out) == (0, plain.stdout)
    assert "no children" in plain.stdout
    rungs = rungs_of(found)
    assert {0, 1, 2} <= set(rungs)
    for rung in rungs.values():
        assert rung["low"] <= rung["batches_per_s"] <= (rung["high"] or rung["batches_per_s"]) and rung["batches"] >= 3
    assert two_are_faster(found)
    assert {entry["workers"] for entry in found["what_if"]} == set(rungs)
    copied = found["experiments"]["dataset"]
    assert copied["whole"] and 32 * 10_000 < copied["bytes"] < 2 * 32 * 10_000, "of each worker"
    assert found["verdicts"][0]["cause"] == "blocked_outside_files"  # a sleep is not a wait for a file
    assert "would help" in found["more_workers"] and "measured" in found["more_workers"]
    assert processes_with(str(script)) == []
    assert list(tmp_path.glob("feedline-diagnose-*")) == []


FILES = """
import sys, torch
paths = sys.argv[1:]
class Files(torch.utils.data.Dataset):
    def __len__(self): return len(paths)
    def __getitem__(self, i):
        with open(paths[i], "rb") as file: return torch.tensor(len(file.read()))
if __name__ == "__main__":
    for _epoch in range(2):
        for batch in torch.utils.data.DataLoader(Files(), batch_size=4, num_workers=1): pass
"""


def was_too_short(tried):
    """Whether a step was omitted for lack of time."""
    reasons = [tried["refused"] or "", *(one["why"] for one in tried["not_tried"])]
    return any("budget" in why or "did not finish within" in why for why in reasons)


def test_one_change_at_a_time_is_tried_next_to_the_ladder(tmp_path):
    script, output = tmp_path / "train.py", tmp_path / "found.json"
    script.write_text(FILES)
    files = [tmp_path / f"{number}.bin" for number in range(60)]
    for file in files:
        with file.open("wb") as written:
            written.write(os.urandom(30_000))
            written.flush()
            os.fsync(written.fileno())  # dirty pages could not be evicted
    for budget in ("12s", LARGER_BUDGET):
        command = [*FEEDLINE, "diagnose", "--budget", budget, "--output", output, "--", sys.executable, script, *files]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(output.read_text())
        if not was_too_short(found["experiments"]):
            break
    tried, disk = found["experiments"], found["experiments"]["disk"]
    assert 32 <= found["files"]["seen"] <= 60 and found["files"]["median_bytes"] == 30_000
    changes = {one["change"]: one for one in tried["comparisons"]}
    not_tried = {one["change"]: one["why"] for one in tried["not_tried"]}
    cold = "files in the page cache"
    assert {*changes, *not_tried} == {cold, "feedline.DataLoader", "prefetch_factor=4", "persistent_workers=True"}
    for one in changes.values():
        assert one["before_low"] <= one["before"] <= (one["before_high"] or one["before"])  # None: no interval
        assert one["ratio_low"] <= one["ratio"] <= (one["ratio_high"] or one["ratio"])
    top = tried["ceiling"]
    assert top["low"] <= top["steps_per_s"] <= top["high"] and top["steps"] > 3
    assert "the loop without waiting" in done.stderr and "prefetch_factor=4" in done.stderr
    if not found["files"]["devices"]:
        assert "no file on a local disk" in not_tried[cold] and "not on a local disk" in disk["refused"]
    else:
        assert changes[cold]["files"] == 60 and changes[cold]["file_bytes"] == 60 * 30_000
        assert disk["refused"] or disk["bytes_per_s"] > 0
    assert all(len(file.read_bytes()) == 30_000 for file in files)


def test_quick_takes_no_copy(tmp_path):
    script, output = tmp_path / "train.py", tmp_path / "found.json"
    script.write_text(SCRIPT)
    command = [*FEEDLINE, "diagnose", "--quick", "--output", output, "--", sys.executable, script]
    subprocess.run(command, capture_output=True, check=True)
    found = json.loads(output.read_text())
    assert found["experiments"] is None and found["what_if"] == []
    assert found["summary"]["rungs"] == {}


def test_a_budget_is_a_time():
    command = [*FEEDLINE, "diagnose", "--budget", "soon", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "60s" in done.stderr


@pytest.mark.parametrize(
    "size, whole, workers, text",
    [
        (85_000_000, True, 4, "while it reads them: 85 MB, 340 MB for 4 workers; workers would share"),
        (85_000_000, False, 4, "while it reads them: at least 85 MB, at least 340 MB for 4 workers;"),
        (85_000_000, True, 0, "while it reads them: 85 MB; workers would share"),
        (2_000_000, True, 4, None),
    ],
)
def test_the_copies_of_a_dataset_are_priced_by_workers(size, whole, workers, text):
    found = text_lines(Experiments(dataset=DatasetCopies(size, whole)), {}, workers)[1:]
    assert [text in line for line in found] == ([True] if text else [])
