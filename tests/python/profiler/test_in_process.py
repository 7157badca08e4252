# SPDX-License-Identifier: Apache-2.0
"""Profiling work in this process, such as a notebook cell: repeated recordings, and clean-up."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from feedline.profiler import in_process
from feedline.profiler.probe import hooks
from feedline.profiler.recordings import Recording
from feedline.profiler.summary import timeline
from feedline.profiler.summary.figures import Summary

torch = pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
from torch.utils.data import DataLoader, Dataset  # noqa: E402

MODULES = [sys.modules[name] for name in hooks._HOOKED if name in sys.modules]


class Slow(Dataset[Any]):
    def __init__(self, rows: int, seconds: float) -> None:
        self.rows, self.seconds = rows, seconds

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return torch.full((4,), index)


def seen(work: Any) -> tuple[Recording, Summary]:
    recording = in_process.run(work, "In [1]")
    summary = timeline.summarise(recording)
    assert summary is not None
    return recording, summary


def surroundings() -> list[Any]:
    """Everything that profiling replaces while it runs: functions, finders, variables, the tensor's methods."""
    owners = [*MODULES, *(value for module in MODULES for value in vars(module).values() if isinstance(value, type))]
    from multiprocessing import reduction

    functions = [dict(vars(owner)) for owner in (*owners, reduction.ForkingPickler, torch.Tensor)]
    return [functions, list(sys.meta_path), dict(os.environ)]


def test_a_loop_is_seen_with_and_without_workers_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other tests create such folders at the same time
    before = surroundings()
    for workers in (0, 1, 0):  # a second and third cell behave like the first
        loader = DataLoader(Slow(160, 0.002), batch_size=4, num_workers=workers)
        rows: list[int] = []

        def work(loader: Any = loader, rows: list[int] = rows) -> None:
            rows.extend(int(row[0]) for batch in loader for row in batch)

        recording, summary = seen(work)
        assert rows == list(range(160)), "what runs is what would run"
        assert (summary.loop.steps, summary.workers, summary.loop.epochs) == (40, workers, 1)
        assert len(recording.loaders) == 1 and recording.loaders[0]["dataset"] == "Slow"
        assert summary.waits.loader > 0.5 and "workers" not in summary.missing
        assert summary.making.wall_ms > 7
    assert surroundings() == before
    assert not list(tmp_path.iterdir())


def test_what_runs_between_two_watched_loops_is_seen_by_neither() -> None:
    loader = DataLoader(Slow(8, 0.001), batch_size=1)
    first = iter(loader)
    held: list[Any] = []

    def begin() -> None:
        held.append(iter(loader))
        next(held[0])

    in_process.run(begin, "In [1]")
    next(held[0]), next(first)  # between

    def work() -> None:
        next(held[0]), next(first)  # of iterators that began in other cells
        assert len(list(loader)) == 8

    recording, summary = seen(work)
    assert (summary.loop.steps, len(recording.processes)) == (8, 1)
    assert recording.processes[0].events[0].begin_ns >= recording.begin_ns


def test_an_error_comes_through_and_what_was_watched_halfway_is_as_it_was() -> None:
    before = surroundings()

    def work() -> None:
        for i, batch in enumerate(DataLoader(Slow(50, 0.001))):
            batch.sum().item()
            if i == 30:
                raise ZeroDivisionError("in the cell")

    with pytest.raises(ZeroDivisionError, match="in the cell"):
        in_process.run(work, "In [1]")
    assert surroundings() == before

    def failing() -> str:
        for _ in zip(range(3), DataLoader(Slow(50, 0.001)), strict=False):
            pass
        return "ZeroDivisionError"

    assert in_process.run(failing, "In [2]").notes[0].startswith("the profile was ended by ZeroDivisionError")
    assert surroundings() == before


def test_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def nested() -> None:
        with pytest.raises(in_process.AlreadyWatched):
            in_process.run(lambda: None, "In [2]")

    in_process.run(nested, "In [1]")
    monkeypatch.setenv("FEEDLINE_DIAGNOSE_SESSION", "/somewhere")
    with pytest.raises(in_process.AlreadyWatched):
        in_process.run(lambda: None, "In [3]")


def test_modules_that_the_work_imports_first_are_watched_too(tmp_path: Path) -> None:
    """Pillow's TIFF plugin is such a module; a fresh copy represents one that has not been imported."""
    name = "PIL.TiffImagePlugin"
    pytest.importorskip(name)
    module = sys.modules.pop(name)
    try:

        def work() -> None:
            import PIL.TiffImagePlugin as fresh

            assert "profiler" in fresh.TiffImageFile.load.__code__.co_filename

        in_process.run(work, "In [1]")
        assert "profiler" not in sys.modules[name].TiffImageFile.load.__code__.co_filename
    finally:
        sys.modules[name] = module


def test_no_thread_is_left() -> None:
    before = threading.active_count()
    seen(lambda: list(DataLoader(Slow(20, 0.001))) and None)
    assert threading.active_count() == before
