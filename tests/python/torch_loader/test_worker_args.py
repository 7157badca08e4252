# SPDX-License-Identifier: Apache-2.0
"""How the dataset is passed to workers that are not forked: once for all, and with torch's semantics."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
from pathlib import Path

import pytest
import torch
from loader_datasets import Dying, Numbers, flatten
from loader_processes import until

from feedline import DataLoader
from feedline.torch_loader.workers.worker_args import NoGcProcessName, enable_gc

_USUAL = gc.get_threshold()


class _Counted(Numbers):
    """Counts how often it is pickled, in the process that pickles it."""

    pickled = 0

    def __getstate__(self):
        type(self).pickled += 1
        return self.__dict__


class _Collector(Numbers):
    """Every sample shows whether its process's garbage collector is enabled."""

    def __getitem__(self, index):
        return gc.isenabled(), *gc.get_threshold(), gc.get_freeze_count()


class _Shared(Numbers):
    """A tensor that workers write to, and a lock that can only be passed to a starting process."""

    def __init__(self, lock=None) -> None:
        super().__init__()
        self.seen, self.lock = torch.zeros(40), lock

    def __getitem__(self, index):
        self.seen[index] = 1
        return index


def _open_payloads(pid):
    links = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(path))
        except OSError:  # closed meanwhile
            continue
    return sum("feedline-dataset" in link for link in links)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_the_dataset_is_pickled_once_and_its_memory_goes_when_all_have_read_it(method):
    """Pain 1, 9."""
    before = _Counted.pickled
    loader = DataLoader(_Counted(), batch_size=4, num_workers=2, multiprocessing_context=method)
    iterator = iter(loader)
    assert _Counted.pickled - before == 1
    assert flatten([next(iterator), next(iterator)]) == list(range(8))
    assert [_open_payloads(pid) for pid in (os.getpid(), *(w.pid for w in iterator._workers))] == [0, 0, 0]
    assert flatten(iterator) == list(range(8, 40))


class _ReadSlowly:
    """Unpickled in two parts, the second when a file exists."""

    def __init__(self, go_on) -> None:
        self.first, self.second, self.go_on = bytes(30_000_000), bytes(30_000_000), go_on

    def __getstate__(self):
        return [self.first, _Wait(self.go_on), self.second]

    def __setstate__(self, state):
        self.first, _, self.second = state


class _Wait:
    def __init__(self, path) -> None:
        self.path = path

    def __setstate__(self, state):
        until(lambda: os.path.exists(state["path"]))


def test_what_all_workers_have_read_goes_while_they_read_on(monkeypatch, tmp_path):
    files = []
    create = os.memfd_create

    def noted(name, flags):
        fd = create(name, flags)
        if name == "feedline-dataset":
            files.append(os.dup(fd))
        return fd

    monkeypatch.setattr(os, "memfd_create", noted)
    data = Numbers()
    data.slow = _ReadSlowly(str(tmp_path / "go on"))
    iterator = iter(DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="spawn"))
    assert os.fstat(files[0]).st_size > 60_000_000
    until(lambda: os.fstat(files[0]).st_blocks * 512 <= 35_000_000, "half of it is gone")
    assert os.fstat(files[0]).st_blocks * 512 > 25_000_000
    (tmp_path / "go on").touch()
    assert flatten(iterator) == list(range(40))
    assert os.fstat(files[0]).st_blocks * 512 < 100_000
    os.close(files[0])


@pytest.mark.parametrize("with_lock", [False, True])
def test_what_only_a_starting_process_can_take_along_still_gets_there(with_lock):
    context = multiprocessing.get_context("spawn")
    data = _Shared(context.Lock() if with_lock else None)
    loader = DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context=context)
    assert flatten(loader) == list(range(40))
    assert bool((data.seen == 1).all())  # torch shares a dataset's tensors with the workers


def test_a_spawned_worker_that_died_is_replaced(tmp_path):
    data = Dying(tmp_path / "died", how=signal.SIGKILL)
    loader = DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="spawn", on_error="skip")
    assert [int(batch[0, 0]) for batch in loader] == list(range(0, 40, 4))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_garbage_collector_of_a_worker_is_as_ever_but_leaves_out_what_was_there(method):
    loader = DataLoader(_Collector(2), num_workers=1, multiprocessing_context=method)
    enabled, *threshold, frozen = (int(x) for x in next(iter(loader)))
    assert enabled
    assert tuple(threshold) == _USUAL
    assert frozen > 10_000  # torch's modules alone are larger


def test_a_name_stops_the_collector_until_the_dataset_is_there():
    try:
        name = pickle.loads(pickle.dumps(NoGcProcessName("SpawnProcess-1")))
        assert (type(name), name) == (str, "SpawnProcess-1")
        assert gc.get_threshold()[0] > 1_000_000_000
        enable_gc()
        assert gc.get_threshold() == _USUAL
        gc.set_threshold(123)  # like a user's main module
        enable_gc()
        assert gc.get_threshold()[0] == 123
    finally:
        gc.set_threshold(*_USUAL)
