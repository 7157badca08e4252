# SPDX-License-Identifier: Apache-2.0
"""A loader's metrics in the logs of frameworks, and its waits in a profiler's trace."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_training import Points
from torch.utils.data import DataLoader as TorchLoader

import feedline
from feedline.integrations.meter import Meter

NAMES = {"batches", "bad_samples", "epoch", "held_bytes", "wait_s", "batches_per_s", "wait_share"}


class Slow(Points):
    def __getitem__(self, index):
        time.sleep(0.01)
        return super().__getitem__(index)


def whole(folder):
    """A Feedline loader over generated images; each batch has one image."""
    return feedline.open(str(folder)).decode().resize((8, 8)).to_dtype("float32")


@pytest.fixture
def folder(tmp_path):
    for name in range(12):
        path = tmp_path / "images" / f"class{name % 2}" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((16, 16, 3), 20 * name, np.uint8)).save(path)
    return tmp_path / "images"


@pytest.mark.parametrize("method", ["process", "thread"])
def test_waits_of_workers_are_a_share_of_the_time_between_two_calls(method):
    loader = feedline.DataLoader(Slow(), 5, num_workers=1, worker_method=method, prefetch_factor=1)
    meter = Meter(loader)
    batches = iter(loader)
    next(batches)
    meter()
    began = time.monotonic()
    next(batches), next(batches)
    found = meter()
    passed = time.monotonic() - began
    assert found.keys() == {f"data/{name}" for name in NAMES}
    assert (found["data/batches"], found["data/epoch"], found["data/bad_samples"]) == (3, 0, 0)
    assert 0.3 * 2 / passed < found["data/batches_per_s"] <= 2 / passed * 1.5
    assert found["data/wait_share"] > 0.5  # the loop does nothing else
    time.sleep(5 * passed)
    assert meter()["data/wait_share"] == 0.0


def test_an_epoch_that_begins_gives_no_negative_rates():
    loader = feedline.DataLoader(Points(), 5, num_workers=1)
    meter = Meter(loader, prefix="")
    list(loader)
    assert meter()["batches"] == 10
    batches = iter(loader)
    next(batches)
    second = meter()
    assert (second["epoch"], second["batches"]) == (1, 1) and second["batches_per_s"] > 0 <= second["wait_share"]


def test_a_loader_that_reads_in_this_thread_has_no_waits_and_strangers_are_refused():
    loader = feedline.DataLoader(Points(), 5)
    meter = Meter(loader, prefix="")
    list(loader)
    assert meter().keys() == NAMES - {"wait_s", "wait_share"}
    with pytest.raises(TypeError, match="not a Feedline loader"):
        Meter(TorchLoader(Points(), 5))


def test_native_threads_are_waited_for_too(folder):
    loader = feedline.DataLoader(whole(folder), 4, num_workers=2, lower="require")
    meter = Meter(loader, prefix="")
    assert len(list(loader)) == 3
    found = meter()
    assert found["batches"] == 3 and 0 < found["wait_share"] <= 1 and found["wait_s"] > 0


def test_a_loader_of_ours_counts_over_all_epochs(folder):
    loader = whole(folder).loader(batch_size=4)
    meter = Meter(loader, prefix="")
    for epochs in (1, 2):
        assert len(list(loader)) == 3
        found = meter()
        assert found.keys() == NAMES and found["batches"] == 3 * epochs
        assert found["batches_per_s"] > 0 and 0 <= found["wait_share"] <= 1


def ranges(loader):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        batches = iter(loader)
        for _ in range(3):
            next(batches)
    return {event.key: event.count for event in profiler.key_averages()}


@pytest.mark.parametrize("output", ["torch", "numpy", "dlpack"])
def test_waits_for_our_loader_are_ranges_in_a_profilers_trace(folder, output):
    loader = whole(folder).loader(batch_size=4, output=output)
    assert ranges(loader)["feedline.Loader.__next__"] == 3


def test_waits_of_the_drop_in_have_torchs_names_in_a_profilers_trace(folder):
    for dataset in (whole(folder), Points(), torch.utils.data.TensorDataset(torch.arange(12))):
        for workers, kind in ((0, "SingleProcess"), (1, "MultiProcessing")):
            name = f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__"
            assert ranges(feedline.DataLoader(dataset, 4, num_workers=workers))[name] == 3


def test_lightnings_loggers_get_them():
    pytest.importorskip("lightning", reason="Lightning is not installed (tools/test --integrations installs it)")
    import lightning_runs
    from lightning.pytorch.loggers.logger import Logger

    from feedline.integrations.lightning import LogLoaderStats

    logged = []

    class Notes(Logger):
        name, version = "notes", 0

        def log_metrics(self, metrics, step=None):
            logged.append((step, metrics))

        def log_hyperparams(self, *given):
            pass

    options = {"callbacks": [LogLoaderStats()], "log_every_n_steps": 2, "logger": Notes()}
    lightning_runs.trainer(**options).fit(
        lightning_runs.Regression(), feedline.DataLoader(Points(), 8, num_workers=1, persistent_workers=True)
    )
    ours = [(step, metrics) for step, metrics in logged if "data/wait_share" in metrics]
    assert [metrics["data/epoch"] for _, metrics in ours] == [0, 0, 0, 1, 1, 1, 1][: len(ours)] and len(ours) >= 6
    assert all(metrics["data/batches_per_s"] > 0 for _, metrics in ours)
    logged.clear()
    lightning_runs.trainer(**options).fit(lightning_runs.Regression(), TorchLoader(Points(), 8))
    assert not any("data/wait_share" in metrics for _, metrics in logged)
