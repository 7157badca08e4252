# SPDX-License-Identifier: Apache-2.0
"""Copies, NVML and copied processes on a real GPU, if there is one."""

import shlex
import sys

import pytest

from feedline.diagnose.experiments import pinning
from feedline.diagnose.watch import watch
from feedline.profiler.summary import timeline

torch = pytest.importorskip("torch", reason="torch, whose tensors are watched, is not installed")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)
pytestmark = pytest.mark.gpu

SCRIPT = """
import torch
plain = torch.zeros(64 << 20, dtype=torch.uint8)
locked = plain.pin_memory()
weight = torch.nn.Parameter(torch.ones(2048, 2048, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.0)
for _ in torch.utils.data.DataLoader(range(300), batch_size=1):
    plain.to("cuda")
    locked.to("cuda", non_blocking=True)
    (weight @ weight).sum().backward()
    optimizer.step()
    torch.cuda.synchronize()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    script = tmp_path_factory.mktemp("gpu") / "train.py"
    script.write_text(SCRIPT)
    recording = watch([sys.executable, "-W", "ignore", str(script)])
    assert recording.returncode == 0, recording.notes
    return timeline.summarise(recording)


def test_copies_are_timed_at_rates_that_a_bus_can_have(found):
    kinds = {(copies.pinned, copies.asked): copies for copies in found.on_device.copies}
    assert set(kinds) == {(False, False), (True, True)}
    for copies in kinds.values():
        assert copies.timed > 0 and 0.5 < copies.bytes_per_step / copies.device_ms / 1e6 < 1000  # GB/s
    assert kinds[False, False].device_ms > kinds[True, True].device_ms


def test_nvml_and_torch_mean_the_same_gpu(found):
    device = found.on_device.device
    assert device["type"] == "cuda" and device["elements"] == {"torch.float32": 2048 * 2048}
    if found.on_device.gpu is None:
        pytest.skip(f"NVML tells nothing: {found.missing['gpu']}")
    assert found.on_device.gpu.name == device["name"]
    assert found.on_device.gpu.capability == device["capability"]
    assert found.on_device.gpu.highest > 0 and found.on_device.gpu.memory_used_bytes > 64 << 20


# A copied process must not access these: events in unreachable objects, page-locked memory that a stream has read, and
# GPU memory.
COPIED = """
import gc, sys, time, torch
gc.disable()
weight = torch.ones(2 << 30, dtype=torch.uint8, device="cuda")
locked = torch.ones(1 << 20).pin_memory()
garbage = [torch.cuda.Event(), locked]
garbage[0].record()
locked.to("cuda", non_blocking=True)
garbage.append(garbage)
del garbage, locked
(torch.rand(2_000_000) * 2).sum()
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        SAMPLE
        time.sleep(0.01)
        return torch.tensor(i)
for batch in torch.utils.data.DataLoader(Samples(), batch_size=4, pin_memory=True):
    batch.to("cuda", non_blocking=True)
"""
FREE = "import torch; free, whole = torch.cuda.mem_get_info(); print('used', whole - free)"


def test_a_process_that_uses_a_gpu_is_copied_and_keeps_nothing_there(tmp_path, capfd):
    script = tmp_path / "train.py"
    python = f"{shlex.quote(sys.executable)} -W ignore"
    before = torch.cuda.mem_get_info()
    script.write_text(COPIED.replace("SAMPLE", "gc.collect()"))
    command = f"{python} {script} && {python} -c {shlex.quote(FREE)}"  # the copy sleeps while the second one runs
    recording = watch(["sh", "-c", command], budget=12.0)
    assert recording.returncode == 0, recording.notes
    used = int(capfd.readouterr().out.split("used ")[1].split()[0])
    assert used - (before[1] - before[0]) < 2 << 30
    assert recording.experiments.refused is None
    assert {0, 1, 2} <= {rung.workers for rung in recording.experiments.rungs}


def test_samples_that_use_the_gpu_are_a_reason(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(COPIED.replace("SAMPLE", "torch.ones(2, device='cuda')"))
    recording = watch([sys.executable, "-W", "ignore", str(script)], budget=5.0)
    assert recording.returncode == 0, recording.notes
    assert "reading samples uses the GPU, which a forked process cannot use" in recording.experiments.refused


def test_page_locked_memory_is_compared_with_pageable():
    facts = {"device": "cuda:0", "batch_bytes": [32 << 20, 4096], "copied_well": False, "python": sys.executable}
    (locked, asked), not_tried = pinning.measure([facts], 60.0)
    assert not_tried == []
    for one in (locked, asked):
        assert one["after"] > 0 and one["ratio_low"] <= one["ratio"] <= one["ratio_high"]
    assert locked["ratio_low"] < 1 and asked["ratio"] < 1
