# SPDX-License-Identifier: Apache-2.0
"""Whatever ends a worker, in the user's code or in Feedline's, is raised as that exception with its location."""

from __future__ import annotations

import asyncio
import sys

import pytest
import torch
from loader_datasets import Numbers

import feedline
from feedline import DataLoader


class Leaving(Numbers):
    """Raises an exception that `except Exception` does not catch."""

    def __init__(self, error, at=9) -> None:
        super().__init__()
        self.error, self.at = error, at

    def __getitem__(self, index):
        if index == self.at:
            raise self.error
        return index


class LeavesOnce(Leaving):
    def __init__(self, mark) -> None:
        super().__init__(SystemExit("once"))
        self.mark = mark

    def __getitem__(self, index):
        if index == self.at and not self.mark.exists():
            self.mark.touch()
            sys.exit("once")
        return index


@pytest.mark.parametrize("method", ["process", "thread"])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    "error", [SystemExit("enough"), asyncio.CancelledError("enough"), KeyboardInterrupt("enough")], ids=type
)
def test_what_ends_a_worker_arrives(error, method, persistent):
    loader = DataLoader(Leaving(error), 4, num_workers=2, worker_method=method, persistent_workers=persistent)
    seen = []
    with pytest.raises(type(error), match="enough") as caught:
        seen.extend(batch.tolist() for batch in loader)
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7]][: len(seen)], "the other worker's batch may still be on its way"
    assert "raise self.error" in str(caught.value.__cause__)
    assert caught.value.sample_index == 9 and caught.value.worker_id == 0
    assert "DataLoader worker" in str(caught.value)
    assert len(list(DataLoader(Numbers(), 4, num_workers=2, worker_method=method))) == 10


@pytest.mark.parametrize("method", ["process", "thread"])
def test_an_init_function_that_exits(method):
    def leave(worker):
        sys.exit("no licence")

    with pytest.raises(SystemExit, match="no licence") as caught:
        list(DataLoader(Numbers(), num_workers=1, worker_init_fn=leave, worker_method=method))
    assert "in leave" in str(caught.value.__cause__)


def test_a_worker_that_left_is_replaced_where_that_was_asked_for(tmp_path, caplog):
    loader = DataLoader(LeavesOnce(tmp_path / "left"), 4, num_workers=2, on_error="skip")
    assert [int(x) for batch in loader for x in batch] == list(range(40))
    assert "SystemExit: once" in caplog.text and "Starting a new worker in its place" in caplog.text


OURS = {
    "the ring cannot be mapped": "feedline.torch_loader.workers.worker.RingWriter",
    "the session cannot be made": "feedline.torch_loader.workers.worker.Session.__init__",
    "answering": "feedline.torch_loader.workers.worker.Session.answer",
    "the answer's frame": "feedline.torch_loader.workers.ring_writer.RingWriter.end_task",
    "before the dataset is there": "feedline.torch_loader.workers.worker.RingGatherer",
}


@pytest.mark.parametrize("place", OURS)
def test_an_error_of_ours_arrives(place, monkeypatch):
    """Workers are forked, so they have the patches that are made here."""

    def broken(*arguments, **named):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(OURS[place], broken)
    with pytest.raises(ZeroDivisionError, match="ours") as caught:
        list(DataLoader(Numbers(), 4, num_workers=2))
    assert "in broken" in str(caught.value.__cause__), "where it was raised"
    assert "worker process" in str(caught.value)


def test_asking_a_dataset_for_its_state_is_ours_too(monkeypatch):
    def broken(*arguments):
        raise TypeError("state_dict() missing 2 required positional arguments")

    monkeypatch.setattr("feedline.torch_loader.fetching.fetch.IterableFetcher.state", broken)
    with pytest.raises(TypeError, match="missing 2 required"):
        list(DataLoader(_Stream(), num_workers=1, snapshot_every_n_steps=1))


class _Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(8))


def test_a_worker_that_just_dies_is_still_reported_as_that(tmp_path):
    from loader_datasets import Dying

    with pytest.raises(feedline.torch_loader.data_loader.WorkerDiedError, match="is killed by signal"):
        list(DataLoader(Dying(tmp_path / "mark", always=True), num_workers=1))
