# SPDX-License-Identifier: Apache-2.0
"""Known problems of torch's DataLoader: memory, shared memory, file descriptors."""

from __future__ import annotations

import collections
import gc
import os
from pathlib import Path

import pytest
import torch
from loader_datasets import Large, Paths, flatten
from loader_processes import HANG_S, alive, run_script, settled, until

import feedline
from feedline import DataLoader


def test_dev_shm_too_small_for_a_batch():
    """Pain 2, 4: no batch uses /dev/shm, with any start method."""
    loader = DataLoader(Large(), batch_size=8, num_workers=2)
    for batch in loader:
        assert "/dev/shm/torch" not in Path("/proc/self/maps").read_text()  # where torch's batches are
        assert batch.shape == (8, 50_000)


def test_too_little_memory_is_an_error_with_numbers(monkeypatch):
    """Pain 2: StorageError instead of a bus error."""
    from feedline.machine import limits

    monkeypatch.setattr(limits, "memory_left", lambda: 1_000_000)
    loader = DataLoader(Large(8), batch_size=8, num_workers=1, memory_budget=1 << 30)
    with pytest.raises(feedline.StorageError, match=r"needs 1,60\d,\d\d\d more bytes .* but 1,000,000 bytes are left"):
        next(iter(loader))


def test_too_many_open_files_when_batches_are_kept():
    """Pain 3: holding batches needs no file descriptor."""
    counts = []
    kept = []
    for batch in DataLoader(Large(60, 20_000), batch_size=1, num_workers=2):
        kept.append(batch)
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] - counts[4] < 10  # by then, every worker's region is mapped; fifty batches have been held since
    assert [int(batch[0, 0]) for batch in kept] == list(range(60))


def test_keeping_every_batch_of_an_epoch_works_and_the_memory_returns():
    """Batches that the user holds do not count in the budget, nothing waits for them, and all of their memory is
    returned.
    """
    loader = DataLoader(
        Large(100, 250_000), batch_size=2, num_workers=2, memory_budget=8_000_000, persistent_workers=True
    )
    batches = list(loader)  # 100 MB
    assert [int(b[i, 0]) for b in batches for i in range(2)] == list(range(100))
    assert all(bool((b[0] == b[0, 0]).all()) for b in batches)
    ring = loader._iterator._worker_group.ring
    kept = os.fstat(ring.fd).st_blocks * 512
    del batches
    gc.collect()
    left = os.fstat(ring.fd).st_blocks * 512
    assert kept > 100_000_000
    assert left < 40_000_000  # memory that both workers keep warm for the next epoch
    assert loader.stats()["bytes_held"] == 0
    assert len(list(loader)) == 50


def test_one_kept_tensor_of_a_finished_loader_does_not_hold_the_rest():
    loader = DataLoader(Large(20, 250_000), batch_size=2, num_workers=1)
    iterator = iter(loader)
    kept = next(iterator)
    fd = os.dup(iterator._worker_group.ring.fd)
    collections.deque(iterator, maxlen=0)
    del iterator
    gc.collect()
    assert os.fstat(fd).st_blocks * 512 < 3_000_000  # one batch of 2 MB
    assert bool((kept[1] == 1).all())
    del kept
    gc.collect()
    assert os.fstat(fd).st_blocks * 512 < 100_000
    os.close(fd)


def test_memory_budget_holds_for_any_prefetch_factor():
    """Pain 2, 26: bytes, not batches, limit the waiting data."""
    loader = DataLoader(Large(60, 250_000), batch_size=1, num_workers=1, prefetch_factor=40, memory_budget=4_000_000)
    iterator = iter(loader)
    next(iterator)
    until(lambda: iterator._worker_group.progress(0) >= 8)  # the worker has filled as many as it may
    settled(lambda: iterator._worker_group.progress(0))
    assert os.fstat(iterator._worker_group.ring.fd).st_blocks * 512 < 7_000_000  # four waiting, one or two here
    assert len(list(iterator)) == 59


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_a_long_list_of_paths_is_pickled_once_for_all_workers(start_method):
    """Pain 1, 9, 27: workers that are not forked read the dataset from one place."""
    data = Paths()
    loader = DataLoader(data, num_workers=2, multiprocessing_context=start_method)
    assert flatten(loader) == list(range(8))
    assert data.pickled == 1


def test_resident_memory_does_not_grow_over_an_epoch():
    """Pain 1: the transport retains no memory. (For lists in datasets, see docs/known-differences.md.)"""
    loader = DataLoader(Large(400, 50_000), batch_size=2, num_workers=2, persistent_workers=True)
    pages = []
    for _ in range(3):
        collections.deque(loader, maxlen=0)
        pages.append(os.fstat(loader._iterator._worker_group.ring.fd).st_blocks)
    # One batch more or less may be warm; an epoch transfers 80 MB.
    assert (pages[2] - pages[1]) * 512 < 8_000_000


def test_kill_9_of_everything_leaves_nothing(tmp_path):
    """Pain 4: the kernel frees the ring when the last process has ended."""
    script = """
        import os, sys
        from loader_datasets import Large
        from feedline import DataLoader
        iterator = iter(DataLoader(Large(), batch_size=4, num_workers=2))
        next(iterator)
        print(*[w.pid for w in iterator._workers], flush=True)
        os.kill(os.getpid(), 9)
    """
    done = run_script(script)
    workers = [int(word) for word in done.stdout.split()]
    assert len(workers) == 2
    until(lambda: not any(alive(pid) for pid in workers))
    assert not [name for name in os.listdir("/dev/shm") if any(str(pid) in name for pid in workers)]


def test_shuffling_a_hundred_million_samples_makes_no_list():
    """Pain 25: 8 bytes per sample, not 44."""
    script = """
        import resource
        from loader_datasets import Numbers
        from feedline import DataLoader
        from torch.utils.data import DataLoader as Torch
        import torch
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        generator = torch.Generator().manual_seed(0)
        it = iter(DataLoader(Numbers(10_000_000), batch_size=4, shuffle=True, generator=generator))
        first = next(it).tolist()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, *first)
    """
    grown, *first = map(int, run_script(script).stdout.split())
    assert grown < 150_000  # KiB; a list takes 440 MB
    order = torch.randperm(10_000_000, generator=_after_base_seed())
    assert first == order[:4].tolist()


def _after_base_seed():
    generator = torch.Generator().manual_seed(0)
    torch.empty((), dtype=torch.int64).random_(generator=generator)
    return generator


class LargeWithBad(Large):
    """Rows of a megabyte, some of which cannot be read."""

    def __getitem__(self, index):
        if index in (9, 10, 14, 22):
            raise ValueError(f"sample {index} is bad")
        return super().__getitem__(index)


@pytest.mark.parametrize("memory_budget", [None, 20_000_000, 1000])
@pytest.mark.parametrize("workers", [1, 2])
def test_large_batches_with_bad_samples_do_not_wait_for_those_after_them(workers, memory_budget):
    """Pain 2, 11: later batches fill the available memory, and the first one is produced a second time."""
    loader = DataLoader(
        LargeWithBad(40, 1_000_000),
        batch_size=4,
        num_workers=workers,
        on_error="skip",
        memory_budget=memory_budget,
        stall_timeout=HANG_S,
    )
    kept, rows = None, 0
    for batch in loader:
        kept = batch
        rows += len(kept)
    assert rows == 36
    assert len(loader.errors) == 4
