# SPDX-License-Identifier: Apache-2.0
"""A loader's numbers in experiment trackers. MLflow and TensorBoard are real if they are installed."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline
from feedline.integrations import trackers
from feedline.integrations.meter import Meter

NAMES = {"batches", "bad_samples", "epoch", "held_bytes", "wait_s", "batches_per_s", "wait_share"}


def rows() -> feedline.Dataset:
    return feedline.arrays(y=np.arange(12))


class Run:
    """wandb's run, as far as it is used."""

    def __init__(self) -> None:
        self.logged: list[tuple[dict[str, float], int]] = []

    def log(self, data: dict[str, Any], step: int | None = None) -> None:
        assert step is not None
        self.logged.append((data, step))


def test_wandb_gets_the_numbers_of_the_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    package = types.ModuleType("wandb")
    package.run = None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", package)
    with rows().loader(3, output="numpy") as loader:
        with pytest.raises(feedline.ConfigError, match=r"wandb\.init"):
            trackers.wandb(loader)
        package.run = run  # type: ignore[attr-defined]
        track = trackers.wandb(loader, every_s=0)
        for step, _ in enumerate(loader):
            assert track(step)
        assert Meter(loader)().keys() == run.logged[0][0].keys()
    assert [step for _, step in run.logged] == [0, 1, 2, 3]
    assert [numbers["data/batches"] for numbers, _ in run.logged] == [1, 2, 3, 4]
    assert set(run.logged[0][0]) == {f"data/{name}" for name in NAMES}


def test_numbers_are_sent_only_after_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(trackers.time, "monotonic", lambda: now[0])
    sent: list[int] = []
    with rows().loader(3, output="numpy") as loader:
        track = trackers.Tracker(loader, lambda numbers, step: sent.append(step), every_s=10)
        for step in range(30):
            now[0] += 1
            assert track(step) == (step in (9, 19, 29))
    assert sent == [9, 19, 29]


@pytest.mark.parametrize("every_s", [-1, "10", True, float("nan")])
def test_bad_intervals(every_s: Any) -> None:
    with rows().loader(3, output="numpy") as loader, pytest.raises(feedline.ConfigError, match="every_s"):
        trackers.Tracker(loader, print, every_s=every_s)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with rows().loader(3, output="numpy") as loader, pytest.raises(feedline.ConfigError, match="mlflow"):
        trackers.mlflow(loader)


def test_tensorboard_files_contain_the_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with rows().loader(3, output="numpy") as loader, SummaryWriter(str(tmp_path)) as writer:
        track = trackers.tensorboard(loader, writer, every_s=0, prefix="train/")
        for step, _ in enumerate(loader):
            track(step)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {f"train/{name}" for name in NAMES}
    assert [(event.step, event.value) for event in events.Scalars("train/batches")] == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_mlflow_stores_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_ASYNC_LOGGING_THREADPOOL_SIZE", "1")  # its threads create a folder at the same time
    mlflow.set_tracking_uri(f"file:{tmp_path}")
    mlflow.set_experiment("feedline")
    with rows().loader(3, output="numpy") as loader, mlflow.start_run() as run:
        track = trackers.mlflow(loader, every_s=0)
        for step, _ in enumerate(loader):
            track(step)
        mlflow.flush_async_logging()
    client = mlflow.MlflowClient()
    history = client.get_metric_history(run.info.run_id, "data/batches")
    assert sorted((point.step, point.value) for point in history) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert set(client.get_run(run.info.run_id).data.metrics) == {f"data/{name}" for name in NAMES}
