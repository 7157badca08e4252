# SPDX-License-Identifier: Apache-2.0
"""The ladder with real small scripts, which use a device that is written in Python: each rung runs in a separate
process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from running_processes import processes_with

from feedline.tune import ladder, ladder_moves
from feedline.tune.search import Refused
from feedline.tune.settings import DROP_IN, Options

pytest.importorskip("torch", reason="torch, whose loader is tuned, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")
registration = pytest.importorskip("torch.utils.backend_registration")
if not hasattr(registration, "_setup_privateuseone_for_python_backend"):
    pytest.skip("this torch has no devices that are written in Python", allow_module_level=True)

FEEDLINE = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]
DEVICE = str(Path(__file__).parents[2] / "scenarios" / "scripts")
# Uses its device before the loop begins, which a copy of the process could not do. The model's memory is 1000 bytes,
# and each sample of a batch needs 100 more; the device has 4000.
SCRIPT = f"""
import sys, time
sys.path.insert(0, {DEVICE!r})
import stand_in_device, torch
torch.set_num_threads(1)
stand_in_device.IN_A_COPY = "abort"
largest = 0
stand_in_device.Module.mem_get_info = lambda self: (4000 - 1000 - 100 * largest, 4000)
stand_in_device.Module.memory_reserved = lambda self: 1000 + 100 * largest
stand_in_device.Module.max_memory_reserved = lambda self: 1000 + 100 * largest
class Samples(torch.utils.data.Dataset):
    def __init__(self): self.names = ["a name of a file %d" % i for i in range(20_000)]
    def __len__(self): return len(self.names)
    def __getitem__(self, i):
        time.sleep(0.001)
        return torch.full((1000,), i)
if __name__ == "__main__":
    torch.zeros(2).to("standin")
    for epoch in range(3):
        for batch in torch.utils.data.DataLoader(Samples(), batch_size=4, num_workers=1):
            largest = max(largest, len(batch))
            DO_COPY
            stand_in_device.launch(1)
            stand_in_device.synchronize()
    sys.exit(7)
"""
COPY = 'batch.to("standin")'


class Busy:
    """GPUs whose utilization is reported as 50 %."""

    unavailable = ""

    def read(self):
        return (SimpleNamespace(index=0, utilisation=0.25), SimpleNamespace(index=1, utilisation=0.5))


@pytest.fixture
def plant_of(tmp_path, monkeypatch):
    """Creates a tuner for a script, and checks that no process and no folder is left."""
    monkeypatch.setattr(ladder.tempfile, "tempdir", str(tmp_path))
    script = tmp_path / "train.py"

    def plant(source, gpus=None):
        script.write_text(source)
        return ladder.LadderPlant([sys.executable, str(script)], gpus or Busy())

    yield plant
    assert processes_with(str(script)) == []
    assert list(tmp_path.glob("feedline-tune-*")) == []


def last(plant, setting):
    return plant._results[setting][-1]


def test_a_rung_uses_the_device_and_changes_what_it_says(plant_of):
    plant = plant_of(SCRIPT.replace("DO_COPY", COPY))
    plant.begin(None)
    own = plant.setting
    assert (own.num_workers, own.batch_size, own.pin_memory, own.non_blocking) == (1, 4, False, False)
    assert plant.facts["gpu"] and plant.facts["epoch_batches"] == 5000 and plant.facts["samples"] == 20_000
    assert plant.facts["batch_bytes"] == 4 * 1000 * 8 and plant.rungs == ladder_moves.ALL

    base = plant.visit(own, 0.0)
    assert len(base.waits_ms) == 100 and 0 < base.wait_share < 1 and base.gpu == 0.5
    copies = last(plant, own)["copies"]
    assert copies["device"] == "standin" and copies["blocking"] == copies["calls"] >= 100 and copies["pinned"] == 0
    assert 0 < plant.copy_share(own) < 1

    pinned = own.but(pin_memory=True, non_blocking=True)
    plant.visit(pinned, 0.0)
    copies = last(plant, pinned)["copies"]
    assert copies["blocking"] == 0 and copies["pinned"] == copies["calls"] >= 100


def test_a_batch_grows_to_the_memory_of_the_device_and_no_further(plant_of):
    plant = plant_of(SCRIPT.replace("DO_COPY", COPY))
    plant.begin(None)
    own = plant.setting
    assert plant.visit(own.but(batch_size=8), 0.0).rows == 8
    assert last(plant, own.but(batch_size=8))["gpu_memory"] == {"total": 4000, "peak": 1800, "others": 0}
    plant.visit(own.but(batch_size=16, num_workers=0), 0.0)
    # 1000 + 100 x 32 exceed the device's memory; with the peak of a single size, 16 would already have been refused
    with pytest.raises(Refused, match="the GPU's memory is the limit: about 5 kB of 4 kB"):
        plant.visit(own.but(batch_size=32), 0.0)
    assert own.but(batch_size=32) not in plant._results


def test_a_pinned_script_with_the_drop_in_is_measured_as_it_is(plant_of):
    source = SCRIPT.replace("num_workers=1", "num_workers=1, pin_memory=True").replace("20_000", "2_000")
    plant = plant_of(source.replace("DO_COPY", COPY.replace(")", ", non_blocking=True)")))
    plant.begin(None)
    assert plant.setting.pin_memory and plant.setting.non_blocking
    ours = plant.setting.but(loader=DROP_IN, pin_memory=False, non_blocking=False)
    assert len(plant.visit(ours, 0.0).waits_ms) == 100
    assert last(plant, ours)["copies"]["pinned"] == 0
    assert plant.border_s(plant.setting.but(persistent_workers=True)) > 0


def test_without_a_device_pinning_and_batch_sizes_are_not_judged(plant_of):
    plant = plant_of(SCRIPT.replace("DO_COPY", "pass"), gpus=SimpleNamespace(unavailable="no driver", read=lambda: ()))
    plant.begin(None)
    assert plant.visit(plant.setting, 0.0).gpu is None
    for changes in ({"pin_memory": True}, {"batch_size": 8}):
        with pytest.raises(Refused, match="not judged, because the script copies no batches to a GPU"):
            plant.visit(plant.setting.but(**changes), 0.0)
    assert plant.rungs == ladder_moves.WITHOUT_GPU
    limits, advice = plant.limits(Options())
    notes = " ".join(plant.notes(limits))
    assert "pinning, non_blocking and the batch size: not judged, because" in notes
    assert limits.advised_workers == advice.workers and "usable CPU" in advice.why


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("print('hello')", "did not iterate over a DataLoader"),
        (
            "import torch\ndef out(x): raise torch.OutOfMemoryError('CUDA out of memory')\n"
            "for batch in torch.utils.data.DataLoader(range(800), collate_fn=out): pass",
            "before its first loop had enough batches: it exited with status 1 .*CUDA out of memory",
        ),
    ],
)
def test_a_script_without_a_measurement_is_refused_with_the_reason(plant_of, source, why):
    with pytest.raises(Refused, match=why):
        plant_of(source).begin(None)


def test_the_command_prints_a_reason_instead_of_a_traceback(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import torch.utils.data\nraise OSError('no such dataset')")
    command = [*FEEDLINE, "tune", "--ladder", "--budget", "5s", "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3 and "Traceback" not in done.stdout + done.stderr
    assert "the script's loader was not measured" in done.stderr and "no such dataset" in done.stderr
