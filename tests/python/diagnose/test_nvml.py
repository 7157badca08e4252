# SPDX-License-Identifier: Apache-2.0
"""`feedline diagnose` with a simulated NVML, which the dynamic linker finds like the driver's library."""

import json
import os
import subprocess
import sys

import made_nvml
import pytest
from watched import sampled

from feedline import _engine

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")

FEEDLINE = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]
SCRIPT = """
import time, torch
torch.cuda.is_initialized = lambda: True  # so says a script that uses a GPU
if __name__ == "__main__":
    for step, batch in enumerate(torch.utils.data.DataLoader(range(STEPS), batch_size=1)):
        time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_nvml.build(tmp_path_factory.mktemp("nvml")).parent


def diagnose(folder, tmp_path, gpus):
    (tmp_path / "gpus").write_text(gpus)
    script, output = tmp_path / "train.py", tmp_path / "found.json"
    command = [*FEEDLINE, "diagnose", "--quick", "--output", output, "--", sys.executable, script]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "FAKE_NVML": str(tmp_path / "gpus")}

    def run(steps):
        script.write_text(SCRIPT.replace("STEPS", str(steps)))
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stderr, json.loads(output.read_text())

    return sampled(run, 60, 600)


def test_gpu_util_is_next_to_the_waits_and_is_explained(folder, tmp_path):
    does = "utilisation 0 30\nmemory 0 12288\nreceived 0 1200000\nreasons 0 64\nfail Temperature 3\n"
    text, found = diagnose(folder, tmp_path, does)
    gpu = found["summary"]["gpu"]
    assert gpu, found["summary"]["missing"]
    assert gpu["utilisation"] == pytest.approx(0.3) and gpu["capability"] == 80 and gpu["indices"] == [0]
    assert gpu["memory_used_bytes"] == 12 << 30 and gpu["received_bytes_per_s"] == pytest.approx(1.2e9)
    assert "GPU 0: GPU-Util 30% (30% to 30%), memory peak 12.0 of 80 GiB, receives 1.2 GB/s, 60 W" in text
    assert "is not the cause" in text and "lowered the GPU's clocks" in text
    assert found["verdicts"][0]["cause"] == "compute_bound"
    assert "GPU 0: its temperature is unavailable: Not Supported" in found["notes"]


def test_a_driver_of_another_version_is_named(folder, tmp_path):
    _, found = diagnose(folder, tmp_path, "fail Init 18\n")
    missing = {entry["cause"]: entry["missing"] for entry in found["abstained"]}
    assert found["summary"]["gpu"] is None
    assert "reboot, or reload the module" in found["summary"]["missing"]["gpu"]
    assert "precision_not_reduced" in missing


def test_the_reader_needs_no_run(folder, tmp_path, monkeypatch):
    (tmp_path / "gpus").write_text("gpus 2\nutilisation 1 88\npid 1 42\n")
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "gpus"))
    reader = _engine.GpuReader(str(folder / "libnvidia-ml.so.1"))
    rows = reader.sample(5)
    assert [row["utilisation"] for row in rows] == [0.0, 0.88] and rows[0]["time_ns"] == 5
    assert reader.processes() == [{"index": 1, "pid": 42, "memory_bytes": 1 << 30}]
    assert [gpu["name"] for gpu in reader.gpus()] == ["Fake GPU 0", "Fake GPU 1"]
    assert reader.notes() == [] and reader.unavailable == ""
    without = _engine.GpuReader("libno-such-nvml.so.1")
    assert without.sample(1) == [] and "NVIDIA driver is not installed" in without.unavailable
