# SPDX-License-Identifier: Apache-2.0
"""An iterator in a child that was forked during an epoch: it takes nothing from its parent, and nothing hangs."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from multiprocessing.connection import Connection

import pytest
import torch
from loader_datasets import Large, Numbers, ResumableStream
from torch.utils.data import TensorDataset

import feedline
from feedline import DataLoader

KINDS = {
    "processes": {"num_workers": 2},
    "processes that live on": {"num_workers": 2, "persistent_workers": True},
    "processes in any order": {"num_workers": 2, "in_order": False},
    "threads": {"num_workers": 2, "worker_method": "thread"},
    "threads that live on": {"num_workers": 2, "worker_method": "thread", "persistent_workers": True},
}


def in_child(act):
    """Runs `act` in a forked child; returns its exception."""
    sys.stdout.flush()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        words = ""
        try:
            said = []
            sys.unraisablehook = said.append
            act()
            gc.collect()
            assert not said, said
        except BaseException:
            words = traceback.format_exc()
        finally:
            os.write(write, words.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        words = file.read()
    os.waitpid(child, 0)
    assert not words, words


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dataset", [Numbers(40), Large(40, 20_000)], ids=["small", "large"])
def test_a_childs_next_takes_nothing_of_its_parents(kind, dataset):
    loader = DataLoader(dataset, 4, **KINDS[kind])
    whole = sorted(str(batch) for batch in DataLoader(dataset, 4))
    iterator = iter(loader)
    first = [next(iterator), next(iterator)]

    def child():
        for _ in range(2):
            with pytest.raises(feedline.Error, match=f"belong to process {os.getppid()}.*iter"):
                next(iterator)
        loader.state_dict()
        loader.stats()
        assert sorted(str(batch) for batch in loader) == whole, "an iterator of its own"
        assert sorted(str(batch) for batch in loader) == whole

    in_child(child)
    assert sorted(str(batch) for batch in [*first, *iterator]) == whole, "the parent goes on with all of its own"
    assert sorted(str(batch) for batch in loader) == whole


@pytest.mark.filterwarnings("ignore")
def test_a_child_asks_its_parents_workers_for_nothing():
    """Its state_dict() is the first one: it cannot reach the workers."""
    loader = DataLoader(ResumableStream(), 4, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    in_child(loader.state_dict)
    list(iterator)
    assert all(entry["state"] is None for entry in loader._progress.cursor.by_worker)


@pytest.mark.filterwarnings("ignore")
def test_arrays_that_threads_gather():
    data = TensorDataset(torch.arange(20 * 400_000, dtype=torch.float32).reshape(20, 400_000))
    loader = DataLoader(data, 2, num_workers=2)
    whole = [batch[0][:, 0].tolist() for batch in loader]
    iterator = iter(loader)
    first = next(iterator)[0][:, 0].tolist()
    has_threads = iterator._threads is not None

    def child():
        torch.set_num_threads(1)  # torch's own threads do not outlive a fork
        if has_threads:
            with pytest.raises(feedline.Error, match="iter"):
                next(iterator)
        assert [batch[0][:, 0].tolist() for batch in loader] == whole

    in_child(child)
    assert [first, *(batch[0][:, 0].tolist() for batch in iterator)] == whole
    assert has_threads, "then nothing would be tested"


@pytest.mark.filterwarnings("ignore")
def test_without_workers_a_child_has_a_copy_of_its_own_as_with_torch():
    iterator = iter(DataLoader(Numbers(12), 4))
    next(iterator)
    in_child(lambda: [batch.tolist() for batch in iterator] == [[4, 5, 6, 7], [8, 9, 10, 11]] or pytest.fail("other"))
    assert [batch.tolist() for batch in iterator] == [[4, 5, 6, 7], [8, 9, 10, 11]]


def test_threads_of_a_child_find_torchs_pool():
    torch.set_num_threads(torch.get_num_threads())  # from here on, a fork leaves a thread pool that torch must replace
    loader = DataLoader(Large(16, 60_000), 2, num_workers=8, worker_method="thread")

    def child():
        assert len(list(loader)) == 8

    for _ in range(10):
        in_child(child)


def test_a_forked_process_leaves_open_what_took_the_number_of_a_closed_pipe(monkeypatch):
    """One thread closes a loader while another opens a file, receives the number just closed, and forks."""
    iterator = iter(DataLoader(Numbers(8), 4, num_workers=1))
    next(iterator)
    workers = iterator._worker_group
    close, taken, failures = os.close, [], []

    def close_and_fork(fd):
        close(fd)
        if taken:
            return
        taken.append(os.dup2(sys.stdout.fileno(), fd))
        try:
            in_child(lambda: (workers._close_ends(), os.fstat(fd)))
        except AssertionError as error:
            failures.append(error)

    monkeypatch.setattr(Connection._close, "__defaults__", (close_and_fork,))
    monkeypatch.setattr(os, "close", close_and_fork)
    workers.close()
    monkeypatch.undo()
    assert len(taken) == 1
    assert not failures
    os.close(taken[0])
