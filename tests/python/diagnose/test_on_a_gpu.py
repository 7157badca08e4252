# SPDX-License-Identifier: Apache-2.0
"""Copies and NVML on a real GPU, where there is one."""

import sys

import pytest

from feedline.diagnose import session
from feedline.diagnose.summary import timeline

torch = pytest.importorskip("torch", reason="torch, whose tensors are watched, is not installed")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

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
    recording = session.run([sys.executable, "-W", "ignore", str(script)])
    assert recording.returncode == 0, recording.notes
    return timeline.summarise(recording)


def test_copies_are_timed_at_rates_that_a_bus_can_have(found):
    kinds = {(copies.pinned, copies.asked): copies for copies in found.copies}
    assert set(kinds) == {(False, False), (True, True)}
    for copies in kinds.values():
        assert copies.timed > 0 and 0.5 < copies.bytes_per_step / copies.device_ms / 1e6 < 1000  # GB/s
    assert kinds[False, False].device_ms > kinds[True, True].device_ms


def test_nvml_and_torch_mean_the_same_gpu(found):
    assert found.device["type"] == "cuda" and found.device["elements"] == {"torch.float32": 2048 * 2048}
    if found.gpu is None:
        pytest.skip(f"NVML tells nothing: {found.missing['gpu']}")
    assert found.gpu.name == found.device["name"]
    assert found.gpu.capability == found.device["capability"]
    assert found.gpu.highest > 0 and found.gpu.memory_used_bytes > 64 << 20
