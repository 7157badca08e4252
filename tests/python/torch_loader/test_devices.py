# SPDX-License-Identifier: Apache-2.0
"""device= of the drop-in if it is impossible: an error before a worker is started, with the next step."""

from __future__ import annotations

import pytest
import torch
from loader_datasets import Numbers

import feedline
from feedline import DataLoader


@pytest.mark.parametrize("device", ["nonsense", "cuda:x", -7, 1.5])
def test_what_is_no_device(device):
    with pytest.raises(feedline.ConfigError, match="device must be None"):
        DataLoader(Numbers(), device=device)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("device", "version", "count", "words"),
    [
        ("cuda", None, 0, "is built without CUDA; install a build with CUDA.*remove device="),
        ("cuda", "12.6", 0, "torch finds no GPU: .*remove device=, so that batches stay in host memory"),
        (1, "12.6", 1, "cuda:1 does not exist: the only GPU is cuda:0"),
        ("cuda:4", "12.6", 3, "cuda:4 does not exist: the GPUs are cuda:0 to cuda:2"),
    ],
)
def test_a_gpu_that_there_is_not(monkeypatch, workers, device, version, count, words):
    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    loader = DataLoader(Numbers(), num_workers=workers, device=device)
    with pytest.raises(feedline.ConfigError, match=words):
        iter(loader)
    assert loader._iterator is None


def test_a_process_that_was_forked(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    with pytest.raises(feedline.ConfigError, match='start processes with "spawn", or remove device='):
        iter(DataLoader(Numbers(), device="cuda"))


def test_none_and_the_cpu_ask_torch_nothing(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", None)
    for device in (None, "cpu"):
        assert len(list(DataLoader(Numbers(), batch_size=10, device=device))) == 4
